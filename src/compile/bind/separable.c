/* Can the functions that a program probes be divided among two engines, each with variables of its
 * own?
 *
 * They can when no value that one function's probes leave behind is met by another's: there are no
 * variables but the clause's own, or each that outlives a firing is an array with probefunc among
 * its keys wherever it is used (`self->ts[probefunc]`), and all functions of one name go to one
 * engine. Aggregations are put together when they are read.
 */
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

static void look(void *arg, const struct node *n)
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
		node_walk(b->clauses.v[i]->pred, look, &shared);
		node_walk(b->clauses.v[i]->body, look, &shared);
	}
	return !shared;
}
