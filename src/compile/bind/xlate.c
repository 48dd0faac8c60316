/* Binds translators, which present kernel structures as the structures of DTrace's
 * documentation. */
#include "compile/bind/bind_private.h"

static bool is_qualifier(enum type_kind k)
{
	return k == TYPE_CONST || k == TYPE_VOLATILE || k == TYPE_RESTRICT;
}

/* Returns true for the same type, ignoring typedefs and qualifiers, behind pointers too. */
static bool same_loose(struct type_graph *g, type_id a, type_id b)
{
	for (;;) {
		a = type_strip(g, a);
		b = type_strip(g, b);
		if (type_kind(g, a) != TYPE_POINTER || type_kind(g, b) != TYPE_POINTER)
			return type_same(g, a, b);
		a = type_ref(g, a);
		b = type_ref(g, b);
	}
}

/* The key under which translators are stored. Equal types have equal keys. Different types may have
 * equal keys too. */
struct xlator_key {
	uint64_t out,
		in;   /* hashes of names; `in` is the type behind all pointers, 0 without a name */
	uint8_t kind; /* enum type_kind of `in` */
	bool near;    /* instead of `in`: any integer (TYPE_INT), any pointer (TYPE_POINTER) */
	uint8_t pad[6];
};

static uint64_t name_key(struct type_graph *g, type_id t)
{
	const char *name = type_tag(g, t);

	return *name ? hash_bytes(name, strlen(name)) : t;
}

static struct xlator_key key_exact(struct type_graph *g, type_id out, type_id in)
{
	struct xlator_key k = { .out = name_key(g, out) };

	for (in = type_strip(g, in); type_is_pointer(g, in); in = type_strip(g, type_ref(g, in)))
		;
	k.kind = (uint8_t)type_kind(g, in);
	if (type_is_sou(g, in))
		k.kind = TYPE_STRUCT; /* a forward declaration may be completed later */
	if (k.kind == TYPE_STRUCT || k.kind == TYPE_ENUM)
		k.in = name_key(g, in);
	return k;
}

static struct xlator_key key_near(struct type_graph *g, type_id out, enum type_kind kind)
{
	return (struct xlator_key){ .out = name_key(g, out), .kind = (uint8_t)kind, .near = true };
}

static struct xlator *xlators_of(struct bind_state *s, const struct xlator_key *k)
{
	const uint64_t *slot = hash_get(&s->xlators, k, sizeof(*k));

	return slot ? (struct xlator *)(uintptr_t)*slot : NULL;
}

/* Returns the translator of exactly these types, ignoring typedefs and qualifiers. */
static struct xlator *find_exact(struct bind_cx *cx, type_id out, type_id in)
{
	struct xlator_key k = key_exact(cx->types, out, in);
	struct xlator *x = xlators_of(cx->state, &k);

	while (x && (!type_same(cx->types, x->out, out) || !same_loose(cx->types, x->in, in)))
		x = x->next;
	return x;
}

static struct xlator *find_near(struct bind_cx *cx, type_id out, enum type_kind kind)
{
	struct xlator_key k = key_near(cx->types, out, kind);
	struct xlator *x = xlators_of(cx->state, &k);

	return x && type_same(cx->types, x->out, out) ? x : NULL;
}

static void remember(struct bind_cx *cx, struct xlator *x)
{
	struct hash *h = &cx->state->xlators;
	struct xlator_key k = key_exact(cx->types, x->out, x->in);
	uint64_t *slot = hash_put(h, &k, sizeof(k), NULL);
	bool fresh;

	x->next = (struct xlator *)(uintptr_t)*slot;
	*slot = (uint64_t)(uintptr_t)x;
	if (!type_is_scalar(cx->types, x->in))
		return;
	k = key_near(cx->types, x->out,
		     type_is_pointer(cx->types, x->in) ? TYPE_POINTER : TYPE_INT);
	slot = hash_put(h, &k, sizeof(k), &fresh);
	if (fresh)
		*slot = (uint64_t)(uintptr_t)x;
}

/* Returns the first conversion to the member `name`, or NULL. */
static const struct node *find_conversion(const struct xlator *x, const char *name)
{
	for (const struct node *m = x->node->xlator.members; m; m = m->next) {
		if (!strcmp(m->e.a->ident.name, name))
			return m;
	}
	return NULL;
}

/* Returns translator x's expression for its member m of type t, over the value `native`, for use at
 * `at`. Returns NULL, with an error, when the types do not fit. */
static struct node *convert_member(struct bind_cx *cx, const struct xlator *x, const struct node *m,
				   const struct node *native, type_id t, const struct node *at)
{
	struct bind_state *s = cx->state;
	const struct env *saved = s->env;
	struct env env = { .name = x->in_name, .value = native };
	struct node *value = clone_at(cx, m->e.b, at);
	bool lib = s->in_lib;

	s->env = &env;
	s->in_lib = is_lib_node(cx, x->node);
	bind_expr(cx, value);
	s->env = saved;
	s->in_lib = lib;
	if (is_poison(value))
		return NULL;
	/* A string may be assigned to a char array of the output type. */
	if (type_is_char_array(cx->types, t) && is_string_like(cx, value)) {
		to_string(cx, value);
		return value;
	}
	if (is_xlated(value) ? type_same(cx->types, value->type, t) : convert_kept(cx, value, t))
		return value;
	bind_error(cx, value, "D_XLATE_INCOMPAT",
		   "translator member %s definition uses incompatible types: \"%s\" = \"%s\"",
		   m->e.a->ident.name, type_text(cx, t), value_text(cx, value));
	return NULL;
}

/* Binds each member over a placeholder value. So errors are reported at the translator, even when
 * it is not used. */
static void try_translator(struct bind_cx *cx, const struct xlator *x)
{
	struct node *native = placeholder(cx, x->node, x->in);
	struct type_member tm;

	for (const struct node *m = x->node->xlator.members; m; m = m->next)
		if (type_find_member(cx->types, x->out, m->e.a->ident.name, &tm))
			convert_member(cx, x, m, native, tm.type, m);
}

void bind_translator(struct bind_cx *cx, const struct node *n)
{
	type_id out = type_strip(cx->types, bind_decl_type(cx, n->xlator.out));
	type_id in = bind_decl_type(cx, n->xlator.in);
	uint32_t errors = cx->diags->errors;
	struct type_member tm;
	struct xlator *x;

	if (type_is_sou(cx->types, out) && !type_is_complete(cx->types, out)) {
		diag_error(cx->diags, n->loc, n->end, "D_XLATE_SOU",
			   "translator output type \"%s\" has no definition%s", type_text(cx, out),
			   tag_suggestion(cx, out));
		return;
	}
	if (!type_is_sou(cx->types, out)) {
		diag_error(cx->diags, n->loc, n->end, "D_XLATE_SOU",
			   "translator output type must be a struct or union, "
			   "not \"%s\"",
			   type_text(cx, out));
		return;
	}
	if (find_exact(cx, out, in)) {
		if (!is_lib_node(cx, n))
			diag_error(cx->diags, n->loc, n->end, "D_XLATE_REDECL",
				   "translator from %s to %s has already been declared",
				   type_text(cx, in), type_text(cx, out));
		return;
	}
	x = arena_new(cx->arena, struct xlator);
	x->node = n;
	x->out = out;
	x->in = in;
	x->in_name = n->xlator.in->name;
	for (const struct node *m = n->xlator.members; m; m = m->next) {
		if (!type_find_member(cx->types, out, m->e.a->ident.name, &tm))
			diag_error(cx->diags, m->loc, m->end, "D_XLATE_MEMB",
				   "translator member %s is not a member of %s", m->e.a->ident.name,
				   type_text(cx, out));
	}
	remember(cx, x);
	if (!is_lib_node(cx, n) && cx->diags->errors == errors)
		try_translator(cx, x);
}

/* Returns the exact translator. If there is none: any integer's for an integer, any pointer's for a
 * void pointer. */
static struct xlator *xlate_find(struct bind_cx *cx, type_id out, type_id in)
{
	struct type_graph *g = cx->types;
	struct xlator *x = find_exact(cx, out, in);

	if (x)
		return x;
	if (type_is_integer(g, in))
		return find_near(cx, out, TYPE_INT);
	if (type_is_pointer(g, in) && type_strip(g, type_ref(g, type_strip(g, in))) == T_VOID)
		return find_near(cx, out, TYPE_POINTER);
	return NULL;
}

static struct xlator *xlator_find(struct bind_cx *cx, type_id out, type_id in)
{
	struct xlator *x;
	type_id t = out;

	out = type_strip(cx->types, out);
	if (type_is_pointer(cx->types, out)) {
		t = type_ref(cx->types, out);
		out = type_strip(cx->types, t);
	}
	x = xlate_find(cx, out, in);
	if (x)
		return x;
	while (is_qualifier(type_kind(cx->types, t)))
		t = type_ref(cx->types, t);
	return lib_load(cx, 'x', type_tag(cx->types, t)) ? xlate_find(cx, out, in) : NULL;
}

void make_xlated(struct bind_cx *cx, struct node *n, type_id out, struct node *native)
{
	struct xlator *x = xlator_find(cx, out, native->type);

	if (!x) {
		bind_error(cx, n, "D_XLATE_NONE", "translator does not exist from \"%s\" to \"%s\"",
			   type_text(cx, native->type), type_text(cx, out));
		return;
	}
	decay(cx, native);
	cast_to(cx, native, x->in);
	n->kind = N_XLATE;
	n->op = OP_NONE;
	n->t.type = NULL;
	n->t.member = NULL;
	n->t.a = native;
	n->type = out;
	n->lvalue = n->constant = false;
	n->id = NULL;
	n->selected = NULL;
	n->aux = x;
}

void bind_xlate(struct bind_cx *cx, struct node *n)
{
	type_id out = bind_decl_type(cx, n->t.type), sou = type_strip(cx->types, out);
	struct node *a = n->t.a;

	if (type_is_pointer(cx->types, sou))
		sou = type_strip(cx->types, type_ref(cx->types, sou));
	if (!type_is_sou(cx->types, sou)) {
		bind_error(
			cx, n, "D_XLATE_SOU",
			"type \"%s\" cannot be the result of a translation: it is no struct or union",
			type_text(cx, out));
		return;
	}
	bind_value(cx, a);
	if (is_poison(a))
		poison(n);
	else
		make_xlated(cx, n, out, a);
}

void xlate_member(struct bind_cx *cx, struct node *n)
{
	struct node *base = n->member.a;
	struct xlator *x = base->aux;
	const char *name = n->member.name;
	const struct node *m = find_conversion(x, name);
	bool pointer = type_is_pointer(cx->types, base->type);
	struct type_member tm;
	struct node *value;

	if (pointer != (n->kind == N_PMEMBER)) {
		bind_error(cx, n, pointer ? "D_OP_SOU" : "D_OP_PTR",
			   "operator %s cannot be applied to type \"%s\" (did you "
			   "mean %s?)",
			   pointer ? "." : "->", type_text(cx, base->type), pointer ? "->" : ".");
		return;
	}
	if (!type_find_member(cx->types, x->out, name, &tm)) {
		struct nearest near = { .word = name };
		uint32_t count = 0;
		const struct type_member *all = type_members(cx->types, x->out, &count);

		for (uint32_t i = 0; i < count && !diags_full(cx->diags); i++)
			nearest_offer(&near, all[i].name);
		bind_error(cx, n, "D_TYPE_MEMBER", "%s is not a member of %s%s%s%s", name,
			   type_text(cx, base->type), near.name ? " (did you mean " : "",
			   near.name ? near.name : "", near.name ? "?)" : "");
		return;
	}
	if (!m) {
		bind_error(cx, n, "D_XLATE_NOCONV",
			   "translator does not define conversion for member: %s", name);
		return;
	}
	value = convert_member(cx, x, m, base->t.a, tm.type, n);
	if (!value) {
		poison(n);
		return;
	}
	value->lvalue = false;
	value->loc = n->loc;
	value->end = n->end;
	replace_node(n, value);
}

uint32_t xlate_count(const struct node *n)
{
	const struct xlator *x = n->aux;

	return list_length(x->node->xlator.members);
}

bool xlate_value(struct bind_cx *cx, const struct node *n, uint32_t i, struct node *set)
{
	const struct xlator *x = n->aux;
	const struct node *m = x->node->xlator.members;
	struct node *l = set->e.a;
	struct type_member tm;

	while (i--)
		m = m->next;
	if (!type_find_member(cx->types, x->out, m->e.a->ident.name, &tm))
		return false; /* reported at the translator */
	l->member.name = m->e.a->ident.name;
	l->selected = arena_new(cx->arena, struct bind_member);
	l->selected->bit_offset = tm.bit_offset;
	l->selected->bit_size = tm.bit_size;
	l->selected->type = tm.type;
	l->type = set->type = tm.type;
	l->lvalue = true;
	set->e.b = convert_member(cx, x, m, n->t.a, tm.type, n);
	return set->e.b;
}
