/* Prints the binder's result as text: for -d bind and golden files. */
#include "compile/bind/bind_private.h"
#include "data/agg.h"

static const char *const scopes[] = { "", "self->", "this->" };

static void print_variables(FILE *out, const struct bound *b, struct type_graph *g, struct arena *a)
{
	for (uint32_t i = 0; i < b->vars.n; i++) {
		const struct variable *v = b->vars.v[i];

		fprintf(out, "variable %s%s", scopes[v->scope], v->name);
		for (uint32_t k = 0; v->assoc && k < v->nkeys; k++)
			fprintf(out, "%s%s", k ? ", " : "[", type_name(g, a, v->keys[k], NULL));
		fprintf(out, "%s: %s\n", v->assoc ? "]" : "", type_name(g, a, v->type, NULL));
	}
}

static void print_aggs(FILE *out, const struct bound *b, struct type_graph *g, struct arena *a)
{
	for (uint32_t i = 0; i < b->aggs.n; i++) {
		const struct agg *x = b->aggs.v[i];

		fprintf(out, "aggregation @%s", x->name);
		for (uint32_t k = 0; k < x->nkeys; k++)
			fprintf(out, "%s%s", k ? ", " : "[",
				b->agg_key_types.v[i][k] == T_DYN
					? "dyn"
					: type_name(g, a, b->agg_key_types.v[i][k], NULL));
		fprintf(out, "%s: %s(%s", x->nkeys ? "]" : "", agg_func_name(x->func),
			x->func == AGG_COUNT ? "" : type_name(g, a, x->type, NULL));
		if (x->func == AGG_LQUANTIZE)
			fprintf(out, ", %lld, %lld, %lld", (long long)x->base, (long long)x->limit,
				(long long)x->step);
		if (x->func == AGG_LLQUANTIZE)
			fprintf(out, ", %u, %u, %u, %u", x->factor, x->low_mag, x->high_mag,
				x->steps);
		fputs(")\n", out);
	}
}

static void print_clause(FILE *out, const struct bound_clause *c, struct type_graph *g)
{
	const struct probe *p = c->nprobes ? c->probes[0] : NULL;

	fprintf(out, "clause %u: %u probe%s, %s", c->index + 1, c->nprobes,
		c->nprobes == 1 ? "" : "s", attach_kind_name(c->attach));
	if (c->thread_arg >= 0)
		fprintf(out, ", thread is argument %d", c->thread_arg);
	if (p)
		fprintf(out, " (%s:%s:%s:%s%s)", p->prov, p->mod, p->func, p->name,
			c->nprobes > 1 ? ", ..." : "");
	fputc('\n', out);
	if (c->pred) {
		fputs("predicate\n", out);
		ast_print(out, c->pred, g);
	}
	if (c->default_action)
		fputs("default action\n", out);
	for (const struct node *n = c->body; n; n = n->next)
		ast_print(out, n, g);
}

void bound_print(FILE *out, const struct bound *b, struct type_graph *types)
{
	struct arena a;

	arena_init(&a);
	print_variables(out, b, types, &a);
	print_aggs(out, b, types, &a);
	for (uint32_t i = 0; i < b->clauses.n; i++)
		print_clause(out, b->clauses.v[i], types);
	arena_fini(&a);
}
