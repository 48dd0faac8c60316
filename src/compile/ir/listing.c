/* What a listing (-S) says of each clause: its description, and the variables that it uses and how. */
#include "compile/ir/gen.h"

#include "wire/record.h"

/* How often a clause names each variable, and how often as the target of a plain assignment, which does not read it. */
struct uses {
	struct gen *g;
	uint32_t *named, *assigned;
	bool *written;
};

/* The place of what n names in these tables: the program's variables, then the built-in ones. -1: no variable. */
static int number(const struct gen *g, const struct node *n)
{
	if ((n->kind != N_IDENT && n->kind != N_INDEX) || !n->id)
		return -1;
	if (n->id->kind == IDENT_VAR && !n->id->var->local)
		return (int)n->id->var->index;
	return n->id->kind == IDENT_BUILTIN ? (int)(g->b->vars.n + n->id->builtin) : -1;
}

static void look(void *arg, const struct node *n)
{
	struct uses *u = arg;
	bool assigns = n->kind == N_ASSIGN, steps = n->kind == N_UNARY && n->op >= OP_PREINC;
	int i = number(u->g, n);

	if (i >= 0)
		u->named[i]++;
	if (!assigns && !steps)
		return;
	i = number(u->g, n->e.a);
	if (i < 0)
		return;
	u->written[i] = true;
	u->assigned[i] += assigns && n->op == OP_NONE;
}

static const char *type_words(struct gen *g, type_id t)
{
	uint32_t size =
		(uint32_t)(type_is_string(g->types, t) ? g->strsize : type_size(g->types, t));
	const char *kind = type_is_pointer(g->types, t)                                 ? "pointer"
			   : type_is_scalar(g->types, t)                                ? "integer"
			   : type_kind(g->types, type_strip(g->types, t)) == TYPE_ARRAY ? "array"
											: "struct";

	if (type_is_string(g->types, t))
		return arena_printf(g->arena, "string (unknown) by ref (size %u)", size);
	return arena_printf(g->arena, "D type (%s)%s (size %u)", kind,
			    type_is_scalar(g->types, t) ? "" : " by ref", size);
}

static struct image_var describe(struct gen *g, uint32_t i)
{
	const struct variable *v = i < g->b->vars.n ? g->b->vars.v[i] : NULL;
	struct image_var r = { .id = i, .scope = "glb" };
	type_id t;

	if (!v) {
		r.name = builtin_table[i - g->b->vars.n].name;
		if (!type_parse_name(g->types, builtin_table[i - g->b->vars.n].type, &t))
			t = T_INT64;
		r.type = type_words(g, t);
		return r;
	}
	r.name = v->name;
	r.scope = v->scope == SCOPE_SELF ? "tls" : v->scope == SCOPE_THIS ? "loc" : "glb";
	r.array = v->assoc;
	r.type = type_words(g, v->type);
	/* clause-local scalars are registers, elements of arrays lie in maps of their own */
	r.placed = !v->assoc && !(v->scope == SCOPE_THIS && type_is_scalar(g->types, v->type));
	r.offset = g->vars[i].offset - (v->scope == SCOPE_SELF   ? (uint32_t)sizeof(struct wire_tls)
					: v->scope == SCOPE_THIS ? SCRATCH_DYN + 2 * g->dynsize
								 : 0);
	return r;
}

static void list_variables(struct gen *g, const struct bound_clause *cl, struct image_clause *ret)
{
	uint32_t n = g->b->vars.n + BUILTIN_COUNT;
	struct uses u = { .g = g,
			  .named = xcalloc(n, sizeof(*u.named)),
			  .assigned = xcalloc(n, sizeof(*u.assigned)),
			  .written = xcalloc(n, sizeof(*u.written)) };

	node_walk(cl->pred, look, &u);
	node_walk(cl->body, look, &u);
	ret->vars = arena_array(g->arena, struct image_var, n);
	for (uint32_t i = 0; i < n; i++) {
		struct image_var *v = &ret->vars[ret->nvars];

		if (!u.named[i])
			continue;
		*v = describe(g, i);
		v->read = u.named[i] > u.assigned[i];
		v->written = u.written[i];
		ret->nvars++;
	}
	free(u.named);
	free(u.assigned);
	free(u.written);
}

void gen_list_clauses(struct gen *g)
{
	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];
		struct image_clause *c = &g->img->clauses[cl->index];

		if (cl->index >= g->img->nclauses || c->vars)
			continue;
		c->desc = arena_strdup(g->arena, cl->desc ? cl->desc : "");
		list_variables(g, cl, c);
	}
}
