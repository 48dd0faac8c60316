/* Assignments, which create variables; ++ and --; indexing. */
#include "compile/bind/state.h"

static const char *var_text(struct bind_cx *cx, const struct node *n)
{
	return arena_printf(cx->arena, "%s%s",
			    n->ident.scope == SCOPE_SELF   ? "self->"
			    : n->ident.scope == SCOPE_THIS ? "this->"
							   : "",
			    n->ident.name);
}

/* The type a variable gets from its first value: no qualifiers, char arrays as strings, other arrays as pointers.
 * T_VOID when it cannot be kept in one. */
static type_id value_type(struct bind_cx *cx, struct node *v)
{
	type_id t = v->type;

	if (type_is_char_array(cx->types, t))
		return T_STRING;
	decay(cx, v);
	t = v->type;
	while (type_kind(cx->types, t) == TYPE_CONST || type_kind(cx->types, t) == TYPE_VOLATILE ||
	       type_kind(cx->types, t) == TYPE_RESTRICT)
		t = type_ref(cx->types, t);
	if (type_is_sou(cx->types, t) && !is_xlated(v))
		return type_size(cx->types, t) && type_size(cx->types, t) <= MAX_VALUE ? t : T_VOID;
	return type_is_scalar(cx->types, t) || type_is_string(cx->types, t) ? t : T_VOID;
}

/* An associative array's key from its first use: integers as 64 bits, so that every later one fits. */
static type_id key_type(struct bind_cx *cx, struct node *k)
{
	type_id t = value_type(cx, k);

	if (type_is_sou(cx->types, t))
		return T_VOID;
	if (type_is_integer(cx->types, t))
		return type_is_signed(cx->types, t) || type_size(cx->types, t) < 8 ? T_INT64
										   : T_UINT64;
	return t;
}

/* n, an index expression whose keys are bound, names an element of v. */
static void bind_assoc(struct bind_cx *cx, struct node *n, struct variable *v)
{
	uint32_t have = list_length(n->e.b), i = 0;
	const char *name = var_text(cx, n->e.a);

	if (have != v->nkeys) {
		bind_error(cx, n, "D_PROTO_LEN",
			   "%s[ ] prototype mismatch: %u key%s passed, %u expected", name, have,
			   have == 1 ? "" : "s", v->nkeys);
		return;
	}
	for (struct node *k = n->e.b; k; k = k->next, i++) {
		if (is_poison(k)) {
			poison(n);
			return;
		}
		if (!convert(cx, k, v->keys[i])) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s[ ] key #%u is incompatible with its first use: \"%s\" is not \"%s\"",
				name, i + 1, type_text(cx, k->type), type_text(cx, v->keys[i]));
			return;
		}
	}
	ident_set_var(cx, n, v);
}

/* A new associative array, whose elements are of type t. */
static struct variable *new_assoc(struct bind_cx *cx, struct node *n, type_id t)
{
	struct node *base = n->e.a;
	struct variable *v;

	if (base->ident.scope == SCOPE_THIS) {
		bind_error(cx, n, "D_ARR_LOCAL",
			   "clause-local variables may not be used as associative arrays: %s",
			   var_text(cx, base));
		return NULL;
	}
	v = var_new(cx, base->ident.scope, base->ident.name, t, n->loc);
	v->assoc = true;
	v->keys = arena_array(cx->arena, type_id, list_length(n->e.b));
	for (struct node *k = n->e.b; k; k = k->next) {
		type_id kt = is_poison(k) ? T_INT64 : key_type(cx, k);

		if (kt == T_VOID) {
			bind_error(cx, n, "D_KEY_TYPE",
				   "%s: a value of type \"%s\" cannot be a key", v->name,
				   type_text(cx, k->type));
			v->bad = true;
			return NULL;
		}
		v->keys[v->nkeys++] = kt;
	}
	return v;
}

static bool bind_key_list(struct bind_cx *cx, struct node *keys)
{
	bool good = true;

	for (struct node *k = keys; k; k = k->next) {
		bind_value(cx, k);
		if (k->type == T_DYN)
			bind_error(
				cx, k, "D_KEY_TYPE",
				"a value of dynamic type cannot be a key of an associative array");
		good &= !is_poison(k);
	}
	return good;
}

/* The left side of an assignment that creates a variable: x, or x[keys]. */
static bool is_creation(struct bind_cx *cx, const struct node *l)
{
	return ident_is_new(cx, l) || (l->kind == N_INDEX && ident_is_new(cx, l->e.a));
}

/* Creates what l names, with values of type t, and binds l. */
static void create(struct bind_cx *cx, struct node *l, type_id t, bool bad)
{
	struct variable *v;

	if (l->kind == N_IDENT) {
		v = var_new(cx, l->ident.scope, l->ident.name, t, l->loc);
		v->bad = bad;
		ident_set_var(cx, l, v);
		return;
	}
	bind_key_list(cx, l->e.b);
	v = new_assoc(cx, l, t);
	if (!v)
		return;
	v->bad = bad;
	if (!bad)
		bind_assoc(cx, l, v);
}

/* Can l be assigned to? Reports at n. */
static bool check_lvalue(struct bind_cx *cx, struct node *n, const struct node *l)
{
	const char *op = n->kind == N_UNARY
				 ? n->op == OP_PREINC || n->op == OP_POSTINC ? "++" : "--"
			 : n->op == OP_NONE ? "="
					    : arena_printf(cx->arena, "%s=", op_name(n->op));

	if (is_poison(l)) {
		poison(n);
		return false;
	}
	if (l->id && (l->id->kind == IDENT_BUILTIN || l->id->kind == IDENT_KSYM ||
		      l->id->kind == IDENT_CTX)) {
		bind_error(cx, n, "D_OP_WRITE",
			   "operator %s can only be applied to a writable variable", op);
		return false;
	}
	if (!l->lvalue) {
		bind_error(cx, n, "D_OP_LVAL", "operator %s must be applied to an lvalue", op);
		return false;
	}
	return true;
}

static void mismatch(struct bind_cx *cx, struct node *n, const struct node *l, const struct node *r)
{
	bind_error(cx, n, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" %s%s \"%s\"",
		   type_text(cx, l->type), n->op == OP_NONE ? "" : op_name(n->op), "=",
		   type_text(cx, r->type));
}

static void bind_compound(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b;
	struct type_graph *g = cx->types;
	type_id t;

	if (type_is_pointer(g, l->type) && (n->op == OP_ADD || n->op == OP_SUB) &&
	    type_is_integer(g, r->type)) {
		type_id ref = type_strip(g, type_ref(g, type_strip(g, l->type)));
		uint64_t size = ref == T_VOID ? 1 : type_size(g, ref);
		struct node *mul;

		if (!size) {
			bind_error(cx, n, "D_OP_INCOMPLETE",
				   "operator %s= requires a pointer to a complete type",
				   op_name(n->op));
			return;
		}
		cast_to(cx, r, T_LONG);
		if (size > 1) {
			mul = make_node(cx, N_BINARY, r);
			mul->op = OP_MUL;
			mul->e.a = r;
			mul->e.b = int_node(cx, r, size, T_LONG);
			mul->type = T_LONG;
			fold(cx, mul);
			n->e.b = mul;
		}
		return;
	}
	if (!type_is_integer(g, l->type) || !is_integer(cx, r)) {
		bind_error(cx, n, "D_OP_ARITH",
			   "operator %s= requires operands of arithmetic type: \"%s\" and \"%s\"",
			   op_name(n->op), type_text(cx, l->type), type_text(cx, r->type));
		return;
	}
	switch (n->op) {
	case OP_DIV:
	case OP_MOD:
		if (is_const(r) && !r->i.value) {
			bind_error(cx, n, "D_DIV_ZERO", "expression contains division by zero");
			return;
		}
		t = common_type(cx, operand_type(cx, l), operand_type(cx, r));
		if (type_size(g, t) != type_size(g, l->type) ||
		    type_is_signed(g, t) != type_is_signed(g, l->type)) {
			/* C computes in a wider type than a's: e.c tells which */
			cast_to(cx, r, t);
			n->e.c = int_node(cx, n, 0, t);
			return;
		}
		cast_to(cx, r, l->type);
		break;
	case OP_SHL:
	case OP_SHR: cast_to(cx, r, promote(cx, r->type)); break;
	default: /* the low bits of the result depend on the low bits of the operands only */
		if (type_int_flags(g, l->type) & TYPE_BOOL) {
			t = common_type(cx, operand_type(cx, l), operand_type(cx, r));
			cast_to(cx, r, t);
			n->e.c = int_node(cx, n, 0, t);
			return;
		}
		cast_to(cx, r, l->type);
		break;
	}
}

void bind_assign(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b;
	bool creation;
	type_id t;

	if (l->kind == N_AGG) {
		bind_error(cx, n, "D_OP_LVAL",
			   "an aggregation may be assigned to by a statement only");
		return;
	}
	if (l->kind == N_INDEX && l->e.a->kind == N_AGG) {
		bind_index(cx, l);
		poison(n);
		return;
	}
	bind_value(cx, r);
	creation = is_creation(cx, l);
	if (creation) {
		t = is_poison(r) ? T_INT : r->type == T_DYN ? T_VOID : value_type(cx, r);
		if (n->op != OP_NONE && type_is_integer(cx->types, t))
			t = T_INT64;
		create(cx, l, t == T_VOID ? T_INT : t, is_poison(r) || t == T_VOID);
		if (t == T_VOID) {
			if (r->type == T_DYN)
				bind_error(cx, n, "D_OP_DYN",
					   "a value of dynamic type cannot be assigned");
			else
				bind_error(
					cx, n, "D_OP_SOU",
					"a value of type \"%s\" cannot be kept in a variable: assign its "
					"address or its members",
					type_text(cx, r->type));
			return;
		}
	} else {
		bind_expr(cx, l);
	}
	if (is_poison(r) || !check_lvalue(cx, n, l)) {
		poison(n);
		return;
	}
	n->type = l->type;
	if (r->type == T_DYN) {
		bind_error(cx, n, "D_OP_DYN", "a value of dynamic type cannot be assigned");
		return;
	}
	if (n->op != OP_NONE)
		bind_compound(cx, n);
	else if (!convert(cx, r, l->type))
		mismatch(cx, n, l, r);
}

void bind_incdec(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;
	const char *op = n->op == OP_PREINC || n->op == OP_POSTINC ? "++" : "--";
	type_id ref;
	uint64_t size;

	if (is_creation(cx, a))
		create(cx, a, T_INT64, false);
	else
		bind_expr(cx, a);
	if (!check_lvalue(cx, n, a))
		return;
	n->type = a->type;
	if (type_is_integer(cx->types, a->type))
		return;
	if (!type_is_pointer(cx->types, a->type)) {
		bind_error(cx, n, "D_OP_SCALAR",
			   "operator %s requires an operand of scalar type, not \"%s\"", op,
			   type_text(cx, a->type));
		return;
	}
	ref = type_strip(cx->types, type_ref(cx->types, type_strip(cx->types, a->type)));
	size = ref == T_VOID ? 1 : type_size(cx->types, ref);
	if (!size) {
		bind_error(cx, n, "D_OP_INCOMPLETE",
			   "operator %s requires a pointer to a complete type", op);
		return;
	}
	n->e.c = int_node(cx, n, size, T_LONG);
}

/* --- indexing --- */

/* uregs[R_RAX]: the register's number is the single key. */
static void bind_uregs(struct bind_cx *cx, struct node *n)
{
	struct node *index = n->e.b;

	bind_value(cx, index);
	if (is_poison(index)) {
		poison(n);
		return;
	}
	if (index->next || !is_const(index)) {
		bind_error(cx, n, "D_REGS_IDX",
			   "index into uregs[ ] must be one of the constants R_*");
		return;
	}
	if (index->i.value > 25) {
		bind_error(cx, n, "D_REGS_IDX", "index %lld is out of range for uregs[ ]",
			   (long long)index->i.value);
		return;
	}
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_BUILTIN;
	n->id->builtin = BUILTIN_UREGS;
	n->type = T_UINT64;
	n->lvalue = false;
}

static void bind_element(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *i = n->e.b;
	struct type_graph *g = cx->types;
	type_id t;
	bool array;

	bind_expr(cx, a);
	bind_value(cx, i);
	if (is_poison(a) || is_poison(i)) {
		poison(n);
		return;
	}
	if (is_xlated(a)) {
		bind_error(cx, n, "D_OP_DYN", "a translated value of type \"%s\" cannot be indexed",
			   type_text(cx, a->type));
		return;
	}
	t = type_strip(g, a->type);
	array = type_kind(g, t) == TYPE_ARRAY;
	if (!array && !type_is_pointer(g, t)) {
		bind_error(cx, n, "D_OP_ARRFUN",
			   "operator [] must be applied to an array or a pointer, not \"%s\"",
			   type_text(cx, a->type));
		return;
	}
	if (i->next) {
		bind_error(cx, n, "D_PROTO_LEN", "a value of type \"%s\" takes one index",
			   type_text(cx, a->type));
		return;
	}
	if (!is_integer(cx, i)) {
		bind_error(cx, n, "D_ARR_BADREF", "array index must be an integer, not \"%s\"",
			   type_text(cx, i->type));
		return;
	}
	if (array && is_const(i) && type_nelems(g, t) && i->i.value >= type_nelems(g, t)) {
		bind_error(cx, n, "D_ARR_BOUNDS",
			   "index outside array bounds: %lld, max is [0, %u]",
			   (long long)i->i.value, type_nelems(g, t) - 1);
		return;
	}
	t = type_ref(g, t);
	if (!type_size(g, t) && type_strip(g, t) != T_VOID && !type_is_string(g, t)) {
		bind_error(cx, n, "D_OP_INCOMPLETE", "elements of type \"%s\" have no size",
			   type_text(cx, t));
		return;
	}
	if (type_strip(g, t) == T_VOID) {
		bind_error(cx, n, "D_DEREF_VOID", "cannot dereference pointer to void");
		return;
	}
	cast_to(cx, i,
		type_is_signed(g, i->type) || type_size(g, i->type) < 8 ? T_INT64 : T_UINT64);
	n->type = t;
	n->lvalue = array ? a->lvalue : true;
}

void bind_index(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;
	struct inline_def *def;
	struct variable *v;
	int b;

	if (a->kind == N_AGG) {
		bind_error(cx, n, "D_AGG_MDIM", "improper use of multi-dimensional array: @%s",
			   a->agg.name);
		return;
	}
	if (!n->e.b) {
		bind_error(cx, n, "D_SYNTAX", "an index is missing between [ and ]");
		return;
	}
	if (a->kind != N_IDENT) {
		bind_element(cx, n);
		return;
	}
	v = var_find(cx, a->ident.scope, a->ident.name);
	if (v && v->bad) {
		poison(n);
		return;
	}
	if (v && v->assoc) {
		if (bind_key_list(cx, n->e.b))
			bind_assoc(cx, n, v);
		else
			poison(n);
		return;
	}
	if (ident_is_new(cx, a)) {
		ident_undefined(cx, a);
		poison(n);
		return;
	}
	if (!v && a->ident.scope == SCOPE_NONE && !env_has(cx, a->ident.name)) {
		b = builtin_find(cx, a->ident.name);
		if (b == BUILTIN_ARGS) {
			bind_args_index(cx, n);
			return;
		}
		if (b == BUILTIN_UREGS) {
			bind_uregs(cx, n);
			return;
		}
		def = b < 0 ? inline_find(cx, a->ident.name) : NULL;
		if (def && def->params.n) {
			for (struct node *k = n->e.b; k; k = k->next)
				bind_value(cx, k);
			expand_inline(cx, n, def, n->e.b);
			return;
		}
	}
	bind_element(cx, n);
}
