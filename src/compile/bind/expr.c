/* Types expressions, operator by operator. */
#include "compile/bind/bind_private.h"

static const char *op_text(enum op op)
{
	static const char *const unary[] = { "-", "+", "!", "~", "*", "&", "++", "--", "++", "--" };

	return op < OP_NEG ? op_name(op) : unary[op - OP_NEG];
}

bool bad_operand(struct node *n, const struct node *a)
{
	if (is_poison(a))
		poison(n);
	return is_poison(a);
}

const char *value_text(struct bind_cx *cx, const struct node *a)
{
	if (is_xlated(a))
		return arena_printf(cx->arena, "translated %s", type_text(cx, a->type));
	if (a->kind == N_AGG)
		return "aggregation";
	if (a->type == T_DYN)
		return "dynamic";
	return type_text(cx, a->type);
}

static void incompatible(struct bind_cx *cx, struct node *n, const char *op, const struct node *a,
			 const struct node *b)
{
	bind_error(cx, n, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" %s \"%s\"",
		   value_text(cx, a), op, value_text(cx, b));
}

/* Returns whether n has an address. A clause-local scalar is a register and has none. */
static bool has_address(struct bind_cx *cx, const struct node *n)
{
	return n->id->kind == IDENT_VAR &&
	       !(n->id->var->scope == SCOPE_THIS && type_is_scalar(cx->types, n->id->var->type));
}

static void bind_addrof(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *root = a;

	bind_expr(cx, a);
	if (bad_operand(n, a))
		return;
	if (is_xlated(a) || a->type == T_DYN) {
		bind_error(cx, n, "D_ADDROF_VAR", "cannot take address of a value of type %s",
			   value_text(cx, a));
		return;
	}
	while (root->kind == N_MEMBER)
		root = root->member.a;
	if (a->kind == N_MEMBER || a->kind == N_PMEMBER) {
		if (a->selected->bit_size) {
			bind_error(cx, n, "D_ADDROF_BITFIELD",
				   "cannot take address of bit-field: %s", a->member.name);
			return;
		}
	}
	if (root->id && (root->id->kind == IDENT_VAR || root->id->kind == IDENT_BUILTIN) &&
	    !(cx->state->showing && has_address(cx, root))) {
		bind_error(cx, n, "D_ADDROF_VAR", "cannot take address of variable: %s",
			   root->id->kind == IDENT_VAR ? root->id->var->name
						       : builtin_table[root->id->builtin].name);
		return;
	}
	if (!a->lvalue) {
		bind_error(cx, n, "D_ADDROF_LVAL", "unary & must be applied to an lvalue");
		return;
	}
	n->type = type_new_pointer(cx->types, a->type);
}

static void bind_deref(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;
	type_id ref;

	bind_expr(cx, a);
	if (is_xlated(a) && type_is_pointer(cx->types, a->type)) {
		type_id t = type_ref(cx->types, type_strip(cx->types, a->type));

		replace_node(n, a);
		n->type = t;
		return;
	}
	if (bad_operand(n, a))
		return;
	decay(cx, a);
	if (!is_pointer(cx, a)) {
		bind_error(cx, n, "D_DEREF_NONPTR", "cannot dereference non-pointer type \"%s\"",
			   type_text(cx, a->type));
		return;
	}
	ref = type_ref(cx->types, type_strip(cx->types, a->type));
	if (kind_of(cx, ref) == TYPE_VOID) {
		bind_error(cx, n, "D_DEREF_VOID", "cannot dereference pointer to void");
		return;
	}
	if (kind_of(cx, ref) == TYPE_FUNC) {
		bind_error(cx, n, "D_DEREF_FUNC", "cannot dereference pointer to function");
		return;
	}
	n->type = ref;
	n->lvalue = true;
}

static void bind_unary(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;

	switch (n->op) {
	case OP_ADDROF: bind_addrof(cx, n); return;
	case OP_DEREF: bind_deref(cx, n); return;
	case OP_PREINC:
	case OP_PREDEC:
	case OP_POSTINC:
	case OP_POSTDEC: bind_incdec(cx, n); return;
	default: break;
	}
	bind_expr(cx, a);
	if (bad_operand(n, a))
		return;
	if (n->op == OP_LNOT) {
		decay(cx, a);
		if (!is_scalar(cx, a)) {
			bind_error(cx, n, "D_OP_SCALAR",
				   "operator ! requires an operand of scalar type, not \"%s\"",
				   value_text(cx, a));
			return;
		}
		n->type = T_INT;
	} else {
		if (!is_integer(cx, a)) {
			bool bits = n->op == OP_BNOT;

			bind_error(cx, n, bits ? "D_OP_INT" : "D_OP_ARITH",
				   "operator %s requires an operand of %s type, not \"%s\"",
				   op_text(n->op), bits ? "integral" : "arithmetic",
				   value_text(cx, a));
			return;
		}
		promote_bits(cx, a);
		cast_value(cx, a, promote(cx, a->type));
		n->type = type_strip(cx->types, a->type);
	}
	fold(cx, n);
}

/* Returns i * size as a 64-bit integer. */
static struct node *scaled(struct bind_cx *cx, struct node *i, uint64_t size)
{
	struct node *n;

	cast_value(cx, i,
		   type_is_signed(cx->types, i->type) || type_size(cx->types, i->type) < 8
			   ? T_LONG
			   : T_ULONG);
	if (size == 1)
		return i;
	n = make_node(cx, N_BINARY, i);
	n->op = OP_MUL;
	n->e.a = i;
	n->e.b = int_node(cx, i, size, i->type);
	n->type = i->type;
	fold(cx, n);
	return n;
}

static void bind_pointer_arith(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *b = n->e.b, *t;
	type_id ref = pointee(cx, is_pointer(cx, a) ? a->type : b->type);
	uint64_t size = type_size(cx->types, ref);

	if (ref == T_VOID || kind_of(cx, ref) == TYPE_FUNC) {
		incompatible(cx, n, op_text(n->op), a, b);
		return;
	}
	if (!size) {
		bind_error(cx, n, "D_OP_INCOMPLETE",
			   "operator %s requires pointers to a complete type", op_text(n->op));
		return;
	}
	if (is_pointer(cx, a) && is_pointer(cx, b)) {
		if (n->op != OP_SUB || !pointers_compatible(cx, a, b)) {
			incompatible(cx, n, op_text(n->op), a, b);
			return;
		}
		cast_to(cx, a, T_LONG);
		cast_to(cx, b, T_LONG);
		n->type = T_LONG;
		if (size > 1) {
			t = make_node(cx, N_BINARY, n);
			replace_node(t, n);
			t->next = NULL;
			n->op = OP_DIV;
			n->e.a = t;
			n->e.b = int_node(cx, n, size, T_LONG);
		}
		return;
	}
	if (is_pointer(cx, b) && n->op == OP_ADD && is_integer(cx, a)) {
		n->e.a = b;
		n->e.b = a;
		a = n->e.a;
		b = n->e.b;
	}
	if (!is_pointer(cx, a) || !is_integer(cx, b)) {
		incompatible(cx, n, op_text(n->op), n->e.a, n->e.b);
		return;
	}
	n->e.b = scaled(cx, b, size);
	n->type = a->type;
}

/* Binds s + i and i + s: the string from its i-th byte. */
static void bind_string_add(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *b = n->e.b;

	if (!is_string(cx, a)) {
		a = n->e.b;
		b = n->e.a;
	}
	cast_to(cx, b, T_INT64);
	n->kind = N_CALL;
	n->op = OP_NONE;
	memset(&n->e, 0, sizeof(n->e));
	n->call.func = subr_table[SUBR_SUBSTR].name;
	n->call.args = a;
	a->next = b;
	b->next = NULL;
	set_call(cx, n, SUBR_SUBSTR);
}

static void bind_relational(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *b = n->e.b;
	type_id t;

	if (is_string(cx, a) || is_string(cx, b)) {
		if (n->op == OP_EQ || n->op == OP_NE)
			zero_to_string(cx, is_string(cx, a) ? b : a);
		if (!is_string_like(cx, a) || !is_string_like(cx, b)) {
			incompatible(cx, n, op_text(n->op), a, b);
			return;
		}
		to_string(cx, a);
		to_string(cx, b);
		n->type = T_INT;
		return;
	}
	decay(cx, a);
	decay(cx, b);
	if (is_null(cx, a) && is_integer(cx, b))
		set_int(cx, a, 0, T_INT);
	if (is_null(cx, b) && is_integer(cx, a))
		set_int(cx, b, 0, T_INT);
	if (is_integer(cx, a) && is_integer(cx, b)) {
		promote_bits(cx, a);
		promote_bits(cx, b);
		t = common_type(cx, a->type, b->type);
		cast_value(cx, a, t);
		cast_value(cx, b, t);
	} else if (pointers_compatible(cx, a, b)) {
		/* Addresses compare as unsigned numbers. */
		if (!is_pointer(cx, a))
			cast_to(cx, a, b->type);
		if (!is_pointer(cx, b))
			cast_to(cx, b, a->type);
	} else {
		incompatible(cx, n, op_text(n->op), a, b);
		return;
	}
	n->type = T_INT;
	fold(cx, n);
}

static void bind_logical(struct bind_cx *cx, struct node *n)
{
	struct node *ab[2] = { n->e.a, n->e.b };

	for (int i = 0; i < 2; i++) {
		decay(cx, ab[i]);
		if (!is_scalar(cx, ab[i])) {
			bind_error(cx, n, "D_OP_SCALAR",
				   "operator %s requires operands of scalar type, not \"%s\"",
				   op_text(n->op), value_text(cx, ab[i]));
			return;
		}
	}
	n->type = T_INT;
	fold(cx, n);
}

static void bind_binary(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *b = n->e.b;
	const char *op = op_text(n->op);
	type_id t;

	bind_expr(cx, a);
	bind_expr(cx, b);
	if (bad_operand(n, a) || bad_operand(n, b))
		return;
	switch (n->op) {
	case OP_LAND:
	case OP_LOR:
	case OP_LXOR: bind_logical(cx, n); return;
	case OP_EQ:
	case OP_NE:
	case OP_LT:
	case OP_LE:
	case OP_GT:
	case OP_GE: bind_relational(cx, n); return;
	case OP_ADD:
	case OP_SUB:
		decay(cx, a);
		decay(cx, b);
		if (is_pointer(cx, a) || is_pointer(cx, b)) {
			bind_pointer_arith(cx, n);
			return;
		}
		if (n->op == OP_ADD && ((is_string(cx, a) && is_integer(cx, b)) ||
					(is_integer(cx, a) && is_string(cx, b)))) {
			bind_string_add(cx, n);
			return;
		}
		if (!is_integer(cx, a) || !is_integer(cx, b)) {
			incompatible(cx, n, op, a, b);
			return;
		}
		break;
	default: break;
	}
	if (!is_integer(cx, a) || !is_integer(cx, b)) {
		bool arith = n->op == OP_MUL || n->op == OP_DIV;

		bind_error(cx, n, arith ? "D_OP_ARITH" : "D_OP_INT",
			   "operator %s requires operands of %s type, not \"%s\"", op,
			   arith ? "arithmetic" : "integral",
			   value_text(cx, is_integer(cx, a) ? b : a));
		return;
	}
	promote_bits(cx, a);
	promote_bits(cx, b);
	if (n->op == OP_SHL || n->op == OP_SHR) {
		cast_value(cx, a, promote(cx, a->type));
		cast_value(cx, b, promote(cx, b->type));
		n->type = type_strip(cx->types, a->type);
	} else {
		t = common_type(cx, a->type, b->type);
		n->type = type_strip(cx->types, result_type(cx, a->type, b->type));
		cast_value(cx, a, t);
		cast_value(cx, b, t);
	}
	fold(cx, n);
}

/* Reports an operand of , or ?: that is no value. */
static bool bad_choice(struct bind_cx *cx, struct node *n, const struct node *a)
{
	const char *op = n->kind == N_COMMA ? "," : "?:";

	if (is_xlated(a) || a->type == T_DYN)
		bind_error(cx, n, "D_OP_DYN", "operator %s operands cannot be of dynamic type: %s",
			   op, value_text(cx, a));
	else if (is_action(a))
		bind_error(cx, n, "D_OP_ACT", "operator %s operands cannot be actions", op);
	return is_poison(n);
}

void bind_ternary(struct bind_cx *cx, struct node *n,
		  void (*bind_chosen)(struct bind_cx *cx, struct node *n))
{
	struct node *c = n->e.a, *a = n->e.b, *b = n->e.c;
	type_id t;

	bind_expr(cx, c);
	if (is_const(c)) {
		replace_node(n, c->i.value ? a : b);
		bind_chosen(cx, n);
		n->lvalue = false;
		return;
	}
	bind_expr(cx, a);
	bind_expr(cx, b);
	if (bad_operand(n, c) || bad_operand(n, a) || bad_operand(n, b))
		return;
	decay(cx, c);
	if (!is_scalar(cx, c)) {
		bind_error(cx, n, "D_OP_SCALAR",
			   "operator ?: expression must be of scalar type, not \"%s\"",
			   value_text(cx, c));
		return;
	}
	if (bad_choice(cx, n, a) || bad_choice(cx, n, b))
		return;
	if (is_string_like(cx, a) && is_string_like(cx, b) &&
	    (!is_pointer(cx, a) || !is_pointer(cx, b))) {
		to_string(cx, a);
		to_string(cx, b);
		n->type = T_STRING;
		return;
	}
	decay(cx, a);
	decay(cx, b);
	if (is_integer(cx, a) && is_integer(cx, b)) {
		promote_bits(cx, a);
		promote_bits(cx, b);
		t = common_type(cx, a->type, b->type);
		cast_value(cx, a, t);
		cast_value(cx, b, t);
		n->type = t;
	} else if (pointers_compatible(cx, a, b)) {
		t = !is_pointer(cx, a) || (is_pointer(cx, b) && pointee(cx, a->type) == T_VOID)
			    ? b->type
			    : a->type;
		cast_value(cx, a, t);
		cast_value(cx, b, t);
		n->type = t;
	} else {
		bind_error(cx, n, "D_OP_INCOMPAT",
			   "operator ?: operands must be of compatible types: \"%s\" and \"%s\"",
			   value_text(cx, a), value_text(cx, b));
		return;
	}
}

struct node *untranslated(struct bind_cx *cx, struct node *n)
{
	return is_xlated(n) && type_is_pointer(cx->types, n->type) && is_integer(cx, n->t.a)
		       ? n->t.a
		       : n;
}

static void bind_cast(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->t.a;
	type_id t = bind_decl_type(cx, n->t.type);
	enum type_kind k = kind_of(cx, t);

	bind_expr(cx, a);
	if (bad_operand(n, a))
		return;
	if (type_is_integer(cx->types, t))
		a = n->t.a = untranslated(cx, a);
	if (is_xlated(a) || a->type == T_DYN || a->type == T_VOID) {
		bind_error(cx, n, "D_CAST_INVAL",
			   "invalid cast expression: \"%s\" to a type of \"%s\"", value_text(cx, a),
			   type_text(cx, t));
		return;
	}
	if (type_is_string(cx->types, t)) {
		n->kind = N_STRINGOF;
		memset(&n->e, 0, sizeof(n->e));
		n->e.a = a;
		if (is_string(cx, a)) {
			replace_node(n, a);
			return;
		}
		decay(cx, a);
		if (!is_string_like(cx, a) && !is_scalar(cx, a)) {
			bind_error(cx, n, "D_CAST_INVAL",
				   "invalid cast expression: \"%s\" to a type of \"string\"",
				   value_text(cx, a));
			return;
		}
		n->type = T_STRING;
		return;
	}
	if (type_is_sou(cx->types, t) && type_same(cx->types, t, a->type)) {
		replace_node(n, a);
		n->type = t;
		return;
	}
	decay(cx, a);
	/* Names and arguments of processes are char arrays in other DTraces and strings here.
	 * Scripts take their address. */
	if (is_string(cx, a) && type_is_char_pointer(cx->types, t)) {
		replace_node(n, a);
		return;
	}
	/* When a script casts such a string to a number, it tests whether the string was set: 0 is
	 * the empty string. */
	if (is_string(cx, a) && type_is_integer(cx->types, t)) {
		struct node *b = arena_new(cx->arena, struct node);

		*b = (struct node){ .kind = N_STR, .loc = a->loc, .end = a->end, .s.text = "" };
		b->type = T_STRING;
		n->kind = N_BINARY;
		n->op = OP_NE;
		memset(&n->e, 0, sizeof(n->e));
		n->e.a = a;
		n->e.b = b;
		n->type = T_INT;
		return;
	}
	/* D shows no address of a string, but DTrace allows (int)"" too. */
	if ((k != TYPE_VOID && !type_is_scalar(cx->types, t)) ||
	    (k != TYPE_VOID && !is_scalar(cx, a))) {
		bind_error(cx, n, "D_CAST_INVAL",
			   "invalid cast expression: \"%s\" to a type of \"%s\"",
			   type_text(cx, a->type), type_text(cx, t));
		return;
	}
	if (k == TYPE_VOID) {
		replace_node(n, a); /* (void)x: nothing uses x */
		return;
	}
	n->type = t;
	n->t.type = NULL;
	fold(cx, n);
}

static void bind_stringof(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;

	bind_expr(cx, a);
	if (bad_operand(n, a))
		return;
	if (is_string(cx, a)) {
		replace_node(n, a);
		return;
	}
	if (!type_is_char_array(cx->types, a->type)) {
		decay(cx, a);
		if (!is_scalar(cx, a)) {
			bind_error(cx, n, "D_STRINGOF_TYPE",
				   "cannot apply stringof to a value of type \"%s\"",
				   value_text(cx, a));
			return;
		}
	}
	n->type = T_STRING;
}

static void bind_comma(struct bind_cx *cx, struct node *n)
{
	bind_expr(cx, n->e.a);
	bind_expr(cx, n->e.b);
	if (bad_operand(n, n->e.a) || bad_operand(n, n->e.b) || bad_choice(cx, n, n->e.a) ||
	    bad_choice(cx, n, n->e.b))
		return;
	n->type = n->e.b->type;
}

bool bind_has_room(struct bind_cx *cx, const struct node *n)
{
	struct bind_state *s = cx->state;

	if (s->depth <= MAX_DEPTH && s->nodes <= MAX_NODES &&
	    (uint64_t)s->all + s->nodes <= MAX_ALL)
		return true;
	if (!s->full)
		diag_error(cx->diags, n->loc, n->end, "D_UNKNOWN",
			   "expression is too large once its inlines and "
			   "translators are expanded");
	s->full = true;
	s->nodes = MAX_NODES + 1; /* stop binding the rest of the clause */
	return false;
}

void bind_expr(struct bind_cx *cx, struct node *n)
{
	struct bind_state *s = cx->state;

	s->depth++;
	s->nodes++;
	if (!bind_has_room(cx, n)) {
		poison(n);
		s->depth--;
		return;
	}
	switch (n->kind) {
	case N_INT: bind_int(cx, n); break;
	case N_STR: n->type = T_STRING; break;
	case N_IDENT: bind_ident(cx, n); break;
	case N_EXTERN: bind_extern(cx, n); break;
	case N_AGG: n->type = T_DYN; break;
	case N_INDEX: bind_index(cx, n); break;
	case N_CALL: bind_call(cx, n); break;
	case N_MEMBER:
	case N_PMEMBER: bind_member(cx, n); break;
	case N_UNARY: bind_unary(cx, n); break;
	case N_BINARY: bind_binary(cx, n); break;
	case N_ASSIGN: bind_assign(cx, n); break;
	case N_TERNARY: bind_ternary(cx, n, bind_expr); break;
	case N_COMMA: bind_comma(cx, n); break;
	case N_CAST: bind_cast(cx, n); break;
	case N_SIZEOF:
	case N_SIZEOF_TYPE: bind_sizeof(cx, n); break;
	case N_OFFSETOF: bind_offsetof(cx, n); break;
	case N_STRINGOF: bind_stringof(cx, n); break;
	case N_XLATE: bind_xlate(cx, n); break;
	default: bind_error(cx, n, "D_UNKNOWN", "not an expression"); break;
	}
	s->depth--;
}

void bind_value(struct bind_cx *cx, struct node *n)
{
	bind_expr(cx, n);
	if (is_poison(n))
		return;
	if (is_xlated(n) || n->kind == N_AGG || is_aggregating(n))
		bind_error(cx, n, "D_OP_DYN", "a value of type %s cannot be used as a whole%s",
			   value_text(cx, n), is_xlated(n) ? ": use its members" : "");
	else if (n->type == T_VOID)
		bind_error(cx, n, "D_OP_ACT", "a value of type void cannot be used");
}
