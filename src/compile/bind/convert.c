/* Converts types, operands and values as C and D do. */
#include "compile/bind/bind_private.h"

bool is_integer(struct bind_cx *cx, const struct node *n)
{
	return !is_xlated(n) && type_is_integer(cx->types, n->type);
}

bool is_scalar(struct bind_cx *cx, const struct node *n)
{
	return !is_xlated(n) && type_is_scalar(cx->types, n->type);
}

bool is_string(struct bind_cx *cx, const struct node *n)
{
	return type_is_string(cx->types, n->type);
}

bool is_pointer(struct bind_cx *cx, const struct node *n)
{
	return !is_xlated(n) && type_is_pointer(cx->types, n->type);
}

enum type_kind kind_of(struct bind_cx *cx, type_id t)
{
	return type_kind(cx->types, type_strip(cx->types, t));
}

bool is_string_like(struct bind_cx *cx, const struct node *n)
{
	return !is_xlated(n) && (is_string(cx, n) || type_is_char_array(cx->types, n->type) ||
				 type_is_char_pointer(cx->types, n->type));
}

/* Puts a copy of n below n, which becomes a node of this kind and type. Returns the copy, the
 * operand that the caller enters. */
static struct node *wrap(struct bind_cx *cx, struct node *n, enum node_kind kind, type_id type)
{
	struct node *inner = make_node(cx, kind, n);

	replace_node(inner, n);
	inner->next = NULL;
	n->kind = kind;
	n->op = OP_NONE;
	n->type = type;
	n->lvalue = n->constant = false;
	n->id = NULL;
	n->selected = NULL;
	n->aux = NULL;
	return inner;
}

bool to_string(struct bind_cx *cx, struct node *n)
{
	if (is_poison(n) || is_string(cx, n))
		return true;
	if (!is_string_like(cx, n))
		return false;
	n->e.a = wrap(cx, n, N_STRINGOF, T_STRING);
	n->e.b = n->e.c = NULL;
	return true;
}

static void insert_cast(struct bind_cx *cx, struct node *n, type_id t)
{
	if (is_const(n) && type_is_scalar(cx->types, t)) {
		set_int(cx, n, n->i.value, t);
		return;
	}
	n->t.a = wrap(cx, n, N_CAST, t);
	n->t.type = NULL;
	n->t.member = NULL;
}

void cast_to(struct bind_cx *cx, struct node *n, type_id t)
{
	if (!is_poison(n) && n->type != t)
		insert_cast(cx, n, t);
}

/* Returns true when n is an operation on int or smaller types and t is an int. All 64 bits of its
 * result are an operand of t then. */
static bool calculated_as_int(struct bind_cx *cx, const struct node *n, type_id t)
{
	struct type_graph *g = cx->types;
	uint64_t size = is_integer(cx, n) ? type_size(g, n->type) : 0;

	if (!size || size > 4 || (size == 4 && !type_is_signed(g, n->type)) ||
	    (type_int_flags(g, n->type) & TYPE_BOOL) || !type_is_integer(g, t) ||
	    type_size(g, t) != 4 || !type_is_signed(g, t))
		return false;
	switch (n->kind) {
	case N_UNARY: return n->op == OP_NEG || n->op == OP_PLUS || n->op == OP_BNOT;
	case N_INT:
	case N_BINARY:
	case N_TERNARY:
	case N_COMMA: return true;
	default: return false;
	}
}

/* Inserts a cast only where it changes the value. Types of one size and sign need none. An operand
 * keeps its high bits; gen_expr() cuts them off by the type that the node has then. */
void cast_value(struct bind_cx *cx, struct node *n, type_id t)
{
	struct type_graph *g = cx->types;

	if (!is_poison(n) && calculated_as_int(cx, n, t)) {
		n->type = t;
		if (n->kind == N_INT)
			n->i.is_unsigned = false;
		return;
	}
	if (!is_poison(n) && n->type != t && type_strip(g, n->type) == type_strip(g, t)) {
		if (is_const(n))
			n->type = t;
		return;
	}
	cast_to(cx, n, t);
}

void decay(struct bind_cx *cx, struct node *n)
{
	type_id t = type_strip(cx->types, n->type);

	if (!is_xlated(n) && type_kind(cx->types, t) == TYPE_ARRAY)
		cast_to(cx, n, type_new_pointer(cx->types, type_ref(cx->types, t)));
	else if (!is_xlated(n) && type_kind(cx->types, t) == TYPE_FUNC)
		cast_to(cx, n, type_new_pointer(cx->types, t));
}

struct node *int_node(struct bind_cx *cx, const struct node *at, uint64_t value, type_id t)
{
	struct node *n = make_node(cx, N_INT, at);

	set_int(cx, n, value, t);
	return n;
}

type_id promote(struct bind_cx *cx, type_id t)
{
	type_id s = type_strip(cx->types, t);

	if (type_kind(cx->types, s) == TYPE_ENUM)
		return type_size(cx->types, s) > 4    ? T_LONG
		       : type_is_signed(cx->types, s) ? T_INT
						      : T_UINT;
	return type_size(cx->types, s) < 4 ? T_INT : s;
}

type_id operand_type(struct bind_cx *cx, const struct node *n)
{
	uint32_t width;

	if ((n->kind != N_MEMBER && n->kind != N_PMEMBER) || is_poison(n) || !n->selected ||
	    !is_integer(cx, n))
		return n->type;
	width = n->selected->bit_size;
	if (!width || width > 32)
		return n->type;
	return width < 32 || type_is_signed(cx->types, n->type) ? T_INT : T_UINT;
}

void promote_bits(struct bind_cx *cx, struct node *n)
{
	cast_to(cx, n, operand_type(cx, n));
}

type_id common_type(struct bind_cx *cx, type_id a, type_id b)
{
	struct type_graph *g = cx->types;
	type_id pa = promote(cx, a), pb = promote(cx, b);
	uint64_t sa = type_size(g, pa), sb = type_size(g, pb);

	if (pa == pb)
		return pa;
	if (sa != sb)
		return sa > sb ? pa : pb;
	return type_is_signed(g, pa) ? pb : pa;
}

/* Returns the type of an operation on two numbers, by D's ranks: char, short, int, long, and above
 * each its unsigned type. Two small operands are computed as ints, as in C, but the result has one
 * of their types. */
type_id result_type(struct bind_cx *cx, type_id a, type_id b)
{
	struct type_graph *g = cx->types;
	type_id common = common_type(cx, a, b), t[2] = { type_strip(g, a), type_strip(g, b) };
	uint64_t rank[2];

	for (int i = 0; i < 2; i++) {
		if (type_kind(g, t[i]) == TYPE_ENUM || type_size(g, t[i]) >= 4 ||
		    (type_int_flags(g, t[i]) & TYPE_BOOL))
			return common;
		rank[i] = 2 * type_size(g, t[i]) + !type_is_signed(g, t[i]);
	}
	return rank[0] < rank[1] ? t[1] : t[0];
}

type_id pointee(struct bind_cx *cx, type_id t)
{
	return type_strip(cx->types, type_ref(cx->types, type_strip(cx->types, t)));
}

/* Returns true for pointers to the same type, a pointer and void *, or a pointer and the constant
 * 0. */
bool pointers_compatible(struct bind_cx *cx, const struct node *a, const struct node *b)
{
	bool pa = is_pointer(cx, a), pb = is_pointer(cx, b);
	type_id ra, rb;

	if (!pa && !pb)
		return false;
	if (!pa)
		return is_integer(cx, a) && is_const(a) && !a->i.value;
	if (!pb)
		return is_integer(cx, b) && is_const(b) && !b->i.value;
	ra = pointee(cx, a->type);
	rb = pointee(cx, b->type);
	return ra == T_VOID || rb == T_VOID || type_same(cx->types, ra, rb);
}

bool convert_kept(struct bind_cx *cx, struct node *n, type_id t)
{
	if (!convert(cx, n, t))
		return false;
	if (!is_poison(n) && calculated_as_int(cx, n, T_INT))
		insert_cast(cx, n, t);
	return true;
}

/* Turns 0 and NULL into the empty string, the value of a string variable that holds none. "x = 0"
 * frees a string variable and "x == NULL" tests whether it is free. */
bool zero_to_string(struct bind_cx *cx, struct node *n)
{
	if (!is_const(n) || n->i.value || is_poison(n))
		return false;
	n->kind = N_STR;
	n->s.text = "";
	n->s.len = 0;
	n->type = T_STRING;
	n->constant = false;
	return true;
}

bool is_null(struct bind_cx *cx, const struct node *n)
{
	return is_const(n) && !n->i.value && n->type == T_VOIDPTR;
}

bool convert(struct bind_cx *cx, struct node *n, type_id t)
{
	struct type_graph *g = cx->types;
	struct node as_target = { .kind = N_CAST, .type = t };

	if (is_poison(n))
		return true;
	if (is_xlated(n) || n->type == T_DYN || n->type == T_VOID)
		return false;
	if (type_is_string(g, t))
		return zero_to_string(cx, n) || to_string(cx, n);
	decay(cx, n);
	if (type_is_integer(g, t) && (is_integer(cx, n) || is_null(cx, n))) {
		cast_value(cx, n, t);
		return true;
	}
	if (type_is_pointer(g, t) && pointers_compatible(cx, n, &as_target)) {
		cast_value(cx, n, t);
		return true;
	}
	return kind_of(cx, t) != TYPE_VOID && !type_is_scalar(g, t) && type_same(g, n->type, t);
}
