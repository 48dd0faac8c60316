/* Types integer constants and folds expressions in the arithmetic of compile/gen/gen_expr.c. */
#include "compile/bind/bind_private.h"

static uint64_t int_truncate(struct bind_cx *cx, uint64_t v, type_id t)
{
	uint64_t size = type_size(cx->types, t);

	if (type_int_flags(cx->types, t) & TYPE_BOOL)
		return v != 0;
	switch (size) {
	case 1: return type_is_signed(cx->types, t) ? (uint64_t)(int8_t)v : (uint8_t)v;
	case 2: return type_is_signed(cx->types, t) ? (uint64_t)(int16_t)v : (uint16_t)v;
	case 4: return type_is_signed(cx->types, t) ? (uint64_t)(int32_t)v : (uint32_t)v;
	default: return v;
	}
}

void set_int(struct bind_cx *cx, struct node *n, uint64_t value, type_id t)
{
	n->kind = N_INT;
	n->op = OP_NONE;
	memset(&n->i, 0, sizeof(n->i));
	n->i.value = int_truncate(cx, value, t);
	n->i.is_unsigned = !type_is_signed(cx->types, t);
	n->type = t;
	n->constant = true;
	n->lvalue = false;
	n->id = NULL;
	n->selected = NULL;
	n->aux = NULL;
}

/* Sets the value of an operation. unsigned int is modulo 2^32, as in C. A signed or small type
 * keeps all 64 bits until the value is stored. */
static void set_result(struct bind_cx *cx, struct node *n, uint64_t value, type_id t)
{
	set_int(cx, n, value, t);
	if (type_size(cx->types, t) < 4 || type_is_signed(cx->types, t))
		n->i.value = value;
}

/* Types a constant: the first of int, unsigned, long, unsigned long that holds the value and that
 * the suffixes allow. A character constant of up to 8 characters gets int or long. */
void bind_int(struct bind_cx *cx, struct node *n)
{
	uint64_t v = n->i.value;
	bool wide = n->i.longs, u = n->i.is_unsigned, any = u || n->i.based;
	type_id t;

	if (n->i.is_char)
		t = (int64_t)v == (int32_t)v || v <= UINT32_MAX ? T_INT : T_LONG;
	else if (!wide && !u && v <= INT32_MAX)
		t = T_INT;
	else if (!wide && any && v <= UINT32_MAX)
		t = T_UINT;
	else if (!u && v <= INT64_MAX)
		t = n->i.longs == 2 ? T_LLONG : T_LONG;
	else
		t = n->i.longs == 2 ? T_ULLONG : T_ULONG;
	n->type = t;
	n->i.value = int_truncate(cx, v, t);
	n->constant = true;
}

static bool fold_unary(struct bind_cx *cx, struct node *n)
{
	uint64_t v = n->e.a->i.value;
	type_id t = n->type;

	switch (n->op) {
	case OP_NEG: v = -v; break;
	case OP_PLUS: break;
	case OP_BNOT: v = ~v; break;
	case OP_LNOT: v = !v; break;
	default: return false;
	}
	set_result(cx, n, v, t);
	return true;
}

static void fold_binary(struct bind_cx *cx, struct node *n)
{
	uint64_t a = n->e.a->i.value, b = n->e.b->i.value, v;
	type_id t = n->type, operands = n->e.a->type;
	bool sign = type_is_signed(cx->types, operands);
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (n->op) {
	case OP_ADD: v = a + b; break;
	case OP_SUB: v = a - b; break;
	case OP_MUL: v = a * b; break;
	case OP_DIV:
	case OP_MOD:
		if (!b) {
			bind_error(cx, n, "D_DIV_ZERO", "expression contains division by zero");
			return;
		}
		if (sign && sb == -1) /* INT64_MIN / -1 traps on the host */
			v = n->op == OP_DIV ? -a : 0;
		else if (n->op == OP_DIV)
			v = sign ? (uint64_t)(sa / sb) : a / b;
		else
			v = sign ? (uint64_t)(sa % sb) : a % b;
		break;
	case OP_SHL: v = a << (b & 63); break;
	case OP_SHR: v = sign ? (uint64_t)(sa >> (b & 63)) : a >> (b & 63); break;
	case OP_AND: v = a & b; break;
	case OP_OR: v = a | b; break;
	case OP_XOR: v = a ^ b; break;
	case OP_LAND: v = a && b; break;
	case OP_LOR: v = a || b; break;
	case OP_LXOR: v = !a != !b; break;
	case OP_EQ: v = a == b; break;
	case OP_NE: v = a != b; break;
	case OP_LT: v = sign ? sa < sb : a < b; break;
	case OP_LE: v = sign ? sa <= sb : a <= b; break;
	case OP_GT: v = sign ? sa > sb : a > b; break;
	case OP_GE: v = sign ? sa >= sb : a >= b; break;
	default: return;
	}
	set_result(cx, n, v, t);
}

void fold(struct bind_cx *cx, struct node *n)
{
	type_id t = n->type;

	switch (n->kind) {
	case N_UNARY:
		if (is_const(n->e.a) && type_is_integer(cx->types, n->e.a->type))
			fold_unary(cx, n);
		break;
	case N_BINARY:
		if (is_const(n->e.a) && is_const(n->e.b))
			fold_binary(cx, n);
		else if ((n->op == OP_DIV || n->op == OP_MOD) && is_const(n->e.b) &&
			 !n->e.b->i.value)
			bind_error(cx, n, "D_DIV_ZERO", "expression contains division by zero");
		break;
	case N_CAST:
		if (is_const(n->t.a) && type_is_scalar(cx->types, t))
			set_int(cx, n, n->t.a->i.value, t);
		break;
	default: break;
	}
}

bool const_value(struct bind_cx *cx, const struct node *n, int64_t *ret, const char *tag,
		 const char *what)
{
	struct node *c = node_clone(cx->arena, n);

	bind_expr(cx, c);
	if (is_poison(c))
		return false;
	if (!is_const(c) || !type_is_integer(cx->types, c->type)) {
		diag_error(cx->diags, n->loc, n->end, tag,
			   "%s must be an integral constant expression", what);
		return false;
	}
	*ret = (int64_t)c->i.value;
	return true;
}
