/* Describes each clause for the listing (-S): its description, and the variables that it uses and
 * how. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

/* The number of times that a clause names a variable, and names it as the target of a plain
 * assignment, which does not read it. */
struct use {
	uint32_t named, assigned;
	bool written;
};
/* All counts are zero between two clauses. Only `touched` is cleared, because a program may have as
 * many variables as clauses. */
struct uses {
	struct gen *g;
	struct use *v;         /* index: number() */
	uint32_t *offsets;     /* index: variable's index */
	VEC(uint32_t) touched; /* numbers whose count is not zero */
};

/* Returns the index of n's variable in these tables: the program's variables, then the built-in
 * ones. Returns -1 when n is no variable. */
static int listing_number(const struct gen *g, const struct node *n)
{
	if ((n->kind != N_IDENT && n->kind != N_INDEX) || !n->id)
		return -1;
	if (n->id->kind == IDENT_VAR && !n->id->var->local)
		return (int)n->id->var->index;
	return n->id->kind == IDENT_BUILTIN ? (int)(g->b->vars.n + n->id->builtin) : -1;
}

static void listing_look(void *arg, const struct node *n)
{
	struct uses *u = arg;
	bool assigns = n->kind == N_ASSIGN, steps = n->kind == N_UNARY && n->op >= OP_PREINC;
	int i = listing_number(u->g, n);

	if (i >= 0 && !u->v[i].named++ && !u->v[i].written)
		vec_push(&u->touched, (uint32_t)i);
	if (!assigns && !steps)
		return;
	i = listing_number(u->g, n->e.a);
	if (i < 0)
		return;
	if (!u->v[i].named && !u->v[i].written)
		vec_push(&u->touched, (uint32_t)i);
	u->v[i].written = true;
	u->v[i].assigned += assigns && n->op == OP_NONE;
}

/* Returns the size that -S lists. DTrace does not count the padding at the end of a struct there,
 * although sizeof() counts it, as in C. */
static uint32_t listed_size(struct gen *g, type_id t)
{
	return (uint32_t)(type_is_string(g->types, t) ? (uint64_t)opt_num(g->options, OPT_STRSIZE)
						      : type_size_of_members(g->types, t));
}

static const char *type_words(struct gen *g, type_id t)
{
	uint32_t size = listed_size(g, t);
	const char *kind = type_is_pointer(g->types, t)                                 ? "pointer"
			   : type_is_scalar(g->types, t)                                ? "integer"
			   : type_kind(g->types, type_strip(g->types, t)) == TYPE_ARRAY ? "array"
											: "struct";

	if (type_is_string(g->types, t))
		return arena_printf(g->arena, "string (unknown) by ref (size %u)", size);
	return arena_printf(g->arena, "D type (%s)%s (size %u)", kind,
			    type_is_scalar(g->types, t) ? "" : " by ref", size);
}

static uint32_t alignment_of(struct gen *g, type_id t)
{
	type_id s = type_strip(g->types, t);

	while (type_kind(g->types, s) == TYPE_ARRAY)
		s = type_strip(g->types, type_ref(g->types, s));
	return type_is_scalar(g->types, s) ? (uint32_t)type_size(g->types, s) : 8;
}

/* Returns offsets as in DTrace's listing: the distance from the first variable of the scope, with
 * the variables in the order of declaration, each aligned by its type. A thread's variables are
 * each at offset 0 of their own storage. descry's real places differ, as the listing's instructions
 * show: clause-local scalars are in registers, and strings have room for a word more. */
static uint32_t *list_offsets(struct gen *g)
{
	uint32_t *ret = xcalloc(g->b->vars.n + 1, sizeof(*ret)), end[SCOPE_THIS + 1] = { 0 };

	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		const struct variable *v = g->b->vars.v[i];
		uint32_t align, *at = &end[v->scope];

		if (v->assoc || v->local || v->scope == SCOPE_SELF)
			continue;
		align = type_is_sou(g->types, v->type) || type_is_string(g->types, v->type)
				? 8
				: alignment_of(g, v->type);
		ret[i] = (*at + align - 1) / align * align;
		*at = ret[i] + listed_size(g, v->type);
	}
	return ret;
}

static struct image_var describe(const struct uses *u, uint32_t i)
{
	struct gen *g = u->g;
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
	/* Elements of arrays are in their own maps. */
	r.placed = !v->assoc;
	r.offset = u->offsets[i];
	return r;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return COMPARE(x, y);
}

static void list_variables(struct uses *u, const struct bound_clause *cl, struct image_clause *ret)
{
	struct gen *g = u->g;

	node_walk(cl->pred, listing_look, u);
	node_walk(cl->body, listing_look, u);
	if (u->touched.n)
		qsort(u->touched.v, u->touched.n, sizeof(*u->touched.v), by_number);
	ret->vars = arena_array(g->arena, struct image_var, u->touched.n + 1);
	for (uint32_t i = 0; i < u->touched.n; i++) {
		struct use *use = &u->v[u->touched.v[i]];
		struct image_var *v = &ret->vars[ret->nvars];

		if (use->named) {
			*v = describe(u, u->touched.v[i]);
			v->read = use->named > use->assigned;
			v->written = use->written;
			ret->nvars++;
		}
		*use = (struct use){ 0 };
	}
	u->touched.n = 0;
}

void gen_list_clauses(struct gen *g)
{
	struct uses u = { .g = g,
			  .v = xcalloc(g->b->vars.n + BUILTIN_COUNT, sizeof(*u.v)),
			  .offsets = list_offsets(g) };

	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];
		struct image_clause *c = &g->img->clauses[cl->index];

		if (cl->index >= g->img->nclauses || c->vars)
			continue;
		c->desc = arena_strdup(g->arena, cl->desc ? cl->desc : "");
		list_variables(&u, cl, c);
	}
	free(u.v);
	free(u.offsets);
	vec_fini(&u.touched);
}
