/* Finds the guards of programs, so that an engine may put a program to sleep.
 *
 *	tick-1s { awake = !awake; }
 *	pid$target::malloc:entry /awake && arg0 > 64/ { ... }
 *
 * A guard is a global variable that stands first in the predicate of a clause. Only the tracer's
 * own clauses (BEGIN, END, tick) may set it to anything but 0. So when the tracer has run these,
 * and finds 0 in the guards of all of a program's clauses, the program does nothing until it runs
 * them again. */
#include "compile/gen/gen_private.h"

/* Runs in the tracer's own thread, in every engine. */
static bool in_tracer(const struct bound_clause *cl)
{
	return cl->attach == ATTACH_TICK ||
	       (cl->attach == ATTACH_SELF && cl->nprobes && strcmp(cl->probes[0]->name, "ERROR"));
}

static const struct variable *global_of(const struct gen *g, const struct node *n)
{
	const struct variable *v =
		n && n->kind == N_IDENT && n->id && n->id->kind == IDENT_VAR ? n->id->var : NULL;

	return v && v->scope == SCOPE_NONE && !v->assoc && !v->local &&
			       type_is_scalar(g->types, v->type)
		       ? v
		       : NULL;
}

static bool guard_is_zero(const struct node *n)
{
	while (n->kind == N_CAST)
		n = n->t.a;
	return n->kind == N_INT && !n->i.value;
}

static void guard_look(void *arg, const struct node *n)
{
	struct gen *g = arg;
	const struct variable *v = NULL;

	if (n->kind == N_ASSIGN && !(n->op == OP_NONE && guard_is_zero(n->e.b)))
		v = global_of(g, n->e.a);
	else if (n->kind == N_UNARY && (n->op == OP_ADDROF || n->op >= OP_PREINC))
		v = global_of(g, n->e.a);
	if (v)
		g->set_by_threads[v->index] = true;
}

void gen_guards_look(struct gen *g)
{
	g->set_by_threads = arena_array(g->arena, bool, g->b->vars.n + 1);
	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		if (in_tracer(cl))
			continue;
		node_walk(cl->pred, guard_look, g);
		node_walk(cl->body, guard_look, g);
	}
}

/* Returns the variable that stands first in the clause's predicate; NULL: there is none. */
static const struct variable *first_of(const struct gen *g, const struct bound_clause *cl)
{
	const struct node *n = cl->pred;

	while (n && n->kind == N_BINARY && n->op == OP_LAND)
		n = n->e.a;
	return global_of(g, n);
}

void gen_guard(const struct gen *g, const struct gen_group *grp, struct image_prog *p)
{
	struct image_guard *guards = arena_array(g->arena, struct image_guard, grp->nclauses + 1);
	uint32_t n = 0;

	if (!g->target->inside || g->report ||
	    (p->attach != ATTACH_UPROBE && p->attach != ATTACH_URETPROBE))
		return;
	for (uint32_t i = 0; i < grp->nclauses; i++) {
		const struct variable *v = first_of(g, grp->clauses[i]);
		bool known = false;

		if (!v || g->set_by_threads[v->index])
			return;
		for (uint32_t k = 0; k < n; k++)
			known |= guards[k].offset == g->vars[v->index].offset;
		if (!known)
			guards[n++] =
				(struct image_guard){ g->vars[v->index].offset,
						      (uint32_t)type_size(g->types, v->type) };
	}
	p->guards = guards;
	p->nguards = n;
}
