/* Decides whether the functions that a program probes can be divided among two engines, each with
 * its own variables.
 *
 * They can when no probe of one function reads a value that a probe of another function left. This
 * holds when all variables are clause-local, or when each other variable is an array that has
 * probefunc among its keys in every use (`self->ts[probefunc]`). All functions of one name go to
 * the same engine. The consumer adds up the engines' aggregations when it reads them. */
#include "compile/bind/bind.h"

static bool is_probefunc(const struct node *n)
{
	while (n->kind == N_CAST || n->kind == N_STRINGOF)
		n = n->kind == N_CAST ? n->t.a : n->e.a;
	return n->kind == N_IDENT && n->id && n->id->kind == IDENT_BUILTIN &&
	       n->id->builtin == BUILTIN_PROBEFUNC;
}

static bool by_function(const struct node *keys)
{
	for (; keys; keys = keys->next)
		if (is_probefunc(keys))
			return true;
	return false;
}

static bool outlives(const struct node *n)
{
	return n->id && n->id->kind == IDENT_VAR && n->id->var->scope != SCOPE_THIS &&
	       !n->id->var->local;
}

static void separable_look(void *arg, const struct node *n)
{
	bool *shared = arg;

	if (n->kind == N_IDENT && outlives(n))
		*shared |= !n->id->var->assoc;
	else if (n->kind == N_INDEX && outlives(n))
		*shared |= !by_function(n->e.b);
	else if (n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR)
		*shared |= n->id->subr == SUBR_SPECULATION || n->id->subr == SUBR_SPECULATE;
}

bool bound_is_separable(const struct bound *b)
{
	bool shared = false;

	for (uint32_t i = 0; i < b->clauses.n; i++) {
		node_walk(b->clauses.v[i]->pred, separable_look, &shared);
		node_walk(b->clauses.v[i]->body, separable_look, &shared);
	}
	return !shared;
}
