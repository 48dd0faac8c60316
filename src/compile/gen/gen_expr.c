/* Generates expressions: integers and pointers in registers, and assignments. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

bool gen_is_string(struct gen *g, const struct node *n)
{
	return type_is_string(g->types, n->type);
}

uint32_t gen_size_of(struct gen *g, type_id t)
{
	uint64_t n = type_size(g->types, t);

	return n == 1 || n == 2 || n == 4 ? (uint32_t)n : 8;
}

static struct ir_val nonzero(struct gen *g, struct ir_val v)
{
	struct ir_val r;
	uint32_t done;

	if (v.kind == IR_IMM)
		return IR_I(v.imm != 0);
	r = ir_new_reg(g->f);
	done = ir_new_label(g->f);
	ir_set(g->f, r, IR_I(1));
	ir_if(g->f, v, IF_NE, IR_I(0), done);
	ir_set(g->f, r, IR_I(0));
	ir_place(g->f, done);
	return r;
}

/* Returns v as a value of type t. Every register holds its value extended to 64 bits. */
static struct ir_val normal(struct gen *g, struct ir_val v, type_id t)
{
	if (!type_is_integer(g->types, t))
		return v;
	if (type_int_flags(g->types, t) & TYPE_BOOL)
		return nonzero(g, v);
	return ir_ext(g->f, v, gen_size_of(g, t), type_is_signed(g->types, t));
}

/* Returns the value of an operation on numbers of type t. unsigned int has 32 bits, as in C. int
 * and smaller types are computed in 64 bits: nothing overflows before the value is stored in a
 * variable or a record. */
static struct ir_val result(struct gen *g, struct ir_val v, type_id t)
{
	return type_is_integer(g->types, t) && !type_is_signed(g->types, t) &&
			       gen_size_of(g, t) == 4
		       ? normal(g, v, t)
		       : v;
}

/* Returns true for the result of an operation, which normal() may change. */
static bool is_result(const struct node *n)
{
	switch (n->kind) {
	case N_INT: return true;
	case N_UNARY:
		return n->op == OP_NEG || n->op == OP_BNOT ||
		       (n->op == OP_PLUS && is_result(n->e.a));
	case N_BINARY:
		return n->op != OP_LAND && n->op != OP_LOR && n->op != OP_LXOR &&
		       !(n->op >= OP_EQ && n->op <= OP_GE);
	case N_TERNARY: return is_result(n->e.b) || is_result(n->e.c);
	case N_COMMA: return is_result(n->e.b);
	default: return false;
	}
}

static struct ir_val operand(struct gen *g, const struct node *n);

static struct ir_val divide(struct gen *g, bool mod, bool sign, struct ir_val a, struct ir_val b,
			    loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val sa, sb, q;

	/* A zero that the compiler finds here, as in "1 / (x, 0)", still faults at run time. */
	if (b.kind == IR_IMM && !b.imm)
		b = ir_mov(f, b);
	if (b.kind == IR_REG)
		gen_fault_if(g, b, IF_EQ, IR_I(0), WIRE_FAULT_DIVZERO, IR_I(0), loc);
	if (!sign)
		return ir_bin(f, mod ? ALU_MOD : ALU_DIV, a, b);
	if (b.kind == IR_IMM && a.kind == IR_IMM && b.imm && b.imm != -1)
		return IR_I(mod ? a.imm % b.imm : a.imm / b.imm);
	/* a| op |b|, then the sign: the quotient has the sign of the operands' product, the
	 * remainder the dividend's. */
	sa = ir_bin(f, ALU_SAR, a, IR_I(63));
	sb = ir_bin(f, ALU_SAR, b, IR_I(63));
	q = ir_bin(f, mod ? ALU_MOD : ALU_DIV, ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, a, sa), sa),
		   ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, b, sb), sb));
	if (!mod)
		sa = ir_bin(f, ALU_XOR, sa, sb);
	return ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, q, sa), sa);
}

/* t: type of the operands, or of the first if they may differ. */
static struct ir_val arithmetic(struct gen *g, enum op op, type_id t, struct ir_val a,
				struct ir_val b, loc_t loc)
{
	struct ir_fn *f = g->f;
	bool sign = type_is_signed(g->types, t);
	struct ir_val v;

	switch (op) {
	case OP_ADD: v = ir_bin(f, ALU_ADD, a, b); break;
	case OP_SUB: v = ir_bin(f, ALU_SUB, a, b); break;
	case OP_MUL: v = ir_bin(f, ALU_MUL, a, b); break;
	case OP_AND: return ir_bin(f, ALU_AND, a, b);
	case OP_OR: return ir_bin(f, ALU_OR, a, b);
	case OP_XOR: return ir_bin(f, ALU_XOR, a, b);
	case OP_SHL: v = ir_bin(f, ALU_SHL, a, b); break;
	case OP_SHR: v = ir_bin(f, sign ? ALU_SAR : ALU_SHR, a, b); break;
	default: v = divide(g, op == OP_MOD, sign, a, b, loc);
	}
	return result(g, v, t);
}

static enum ir_cond condition(struct gen *g, const struct node *n)
{
	bool s = type_is_integer(g->types, n->e.a->type) && type_is_signed(g->types, n->e.a->type);

	switch (n->op) {
	case OP_EQ: return IF_EQ;
	case OP_NE: return IF_NE;
	case OP_LT: return s ? IF_SLT : IF_ULT;
	case OP_LE: return s ? IF_SLE : IF_ULE;
	case OP_GT: return s ? IF_SGT : IF_UGT;
	default: return s ? IF_SGE : IF_UGE;
	}
}

static bool is_comparison(enum op op)
{
	return op >= OP_EQ && op <= OP_GE;
}

void gen_cond(struct gen *g, const struct node *n, bool want, uint32_t label)
{
	struct ir_fn *f = g->f;
	bool known[LAZY_COUNT];

	if (n->kind == N_UNARY && n->op == OP_LNOT) {
		gen_cond(g, n->e.a, !want, label);
	} else if (n->kind == N_BINARY && (n->op == OP_LAND || n->op == OP_LOR)) {
		/* If either side alone decides for `want`, both jump to the label. If both must
		 * agree, the first skips the second. */
		bool either = (n->op == OP_LOR) == want;
		uint32_t skip = ir_new_label(f);

		gen_cond(g, n->e.a, either ? want : !want, either ? label : skip);
		gen_lazy_save(g, known);
		gen_cond(g, n->e.b, want, label);
		gen_lazy_restore(g, known);
		ir_place(f, skip);
	} else if (n->kind == N_BINARY && is_comparison(n->op) && gen_is_string(g, n->e.a)) {
		ir_if(f, gen_str_compare(g, n->op, n->e.a, n->e.b), want ? IF_NE : IF_EQ, IR_I(0),
		      label);
	} else if (n->kind == N_BINARY && is_comparison(n->op)) {
		enum ir_cond c = condition(g, n);
		struct ir_val a = operand(g, n->e.a), b = operand(g, n->e.b);

		ir_if(f, a, want ? c : ir_inverse(c), b, label);
	} else {
		ir_if(f, operand(g, n), want ? IF_NE : IF_EQ, IR_I(0), label);
	}
}

static struct ir_val truth(struct gen *g, const struct node *n)
{
	struct ir_val v = ir_new_reg(g->f);
	uint32_t done = ir_new_label(g->f);
	bool known[LAZY_COUNT];

	ir_set(g->f, v, IR_I(1));
	gen_lazy_save(g, known);
	gen_cond(g, n, true, done);
	gen_lazy_restore(g, known);
	ir_set(g->f, v, IR_I(0));
	ir_place(g->f, done);
	return v;
}

static struct ir_val binary(struct gen *g, const struct node *n)
{
	struct ir_val a, b;

	if (n->op == OP_LAND || n->op == OP_LOR || is_comparison(n->op))
		return truth(g, n);
	if (n->op == OP_LXOR) {
		a = truth(g, n->e.a);
		return ir_bin(g->f, ALU_XOR, a, truth(g, n->e.b));
	}
	a = operand(g, n->e.a);
	b = operand(g, n->e.b);
	return arithmetic(g, n->op, n->e.a->type, a, b, n->loc);
}

/* Returns the value of an assignment: the bits of v that the place holds afterwards. */
static struct ir_val kept(struct gen *g, struct ir_val v, struct lval p)
{
	p.bit_off = 0;
	return p.bit_size ? gen_bits(g, v, &p) : v;
}

/* Generates ++ and --. The binder sets e.c, the step of a pointer. */
static struct ir_val step(struct gen *g, const struct node *n)
{
	struct lval p = gen_place(g, n->e.a);
	struct ir_val old = gen_load_place(g, p, n->loc),
		      by = n->e.c ? gen_expr(g, n->e.c) : IR_I(1), new;
	bool inc = n->op == OP_PREINC || n->op == OP_POSTINC;

	new = normal(g, ir_bin(g->f, inc ? ALU_ADD : ALU_SUB, old, by), n->e.a->type);
	gen_store_place(g, p, new, n->loc);
	return n->op == OP_POSTINC || n->op == OP_POSTDEC ? old : kept(g, new, p);
}

static struct ir_val assign_bytes(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	const uint64_t bytes = type_size(g->types, n->e.a->type);
	const uint32_t size = bytes > GEN_VARIABLES_MAX ? GEN_VARIABLES_MAX : (uint32_t)bytes;
	struct lval place = gen_place(g, n->e.b);
	struct ir_val from = gen_readable(g, place), to, r;

	if (bytes > GEN_VARIABLES_MAX) {
		diag_error(g->diags, n->loc, n->end, "D_TOO_LARGE",
			   "an assignment of %llu bytes does not fit: at most %u MB",
			   (unsigned long long)bytes, GEN_VARIABLES_MAX >> 20);
		g->failed = true;
	}
	to = gen_writable(g, gen_place(g, n->e.a), size, n->loc);
	r = place.kind == PLACE_KERNEL ? gen_pointed_copy(g, to, IR_I(size), from, false)
				       : ir_call(f, HELPER_READ_KERNEL, 3, to, IR_I(size), from);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), n->loc);
	return from;
}

/* Generates `struct = 0`. Removes an array's element. Zeroes a thread's struct, which is its state
 * before the first use. */
static struct ir_val free_struct(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct lval p = gen_place(g, n->e.a);
	uint32_t none = ir_new_label(f);
	struct ir_val tls;

	if (p.kind == PLACE_ASSOC) {
		(void)ir_call(f, HELPER_MAP_DELETE, 2,
			      ir_map(f, (uint32_t)g->vars[p.var->index].map), p.v);
	} else {
		tls = gen_lazy(g, LAZY_TLS);
		ir_if(f, tls, IF_EQ, IR_I(0), none);
		gen_zero_element(g, p.var, ir_bin(f, ALU_ADD, tls, IR_I(p.off)));
	}
	ir_place(f, none);
	return IR_I(0);
}

static struct ir_val assign(struct gen *g, const struct node *n)
{
	struct ir_val v;
	struct lval p;

	if (gen_is_string(g, n->e.a) ||
	    (gen_is_string(g, n->e.b) && gen_is_aggregate_type(g, n->e.a->type))) {
		gen_assign_string(g, gen_place(g, n->e.a), n->e.b);
		return IR_I(0);
	}
	if (gen_is_aggregate_type(g, n->e.a->type))
		return n->e.b->kind == N_INT ? free_struct(g, n) : assign_bytes(g, n);
	if (n->op == OP_NONE) {
		v = operand(g, n->e.b);
		p = gen_place(g, n->e.a);
	} else {
		/* The binder puts the type to compute in into e.c when it is not the target's
		 * type. */
		type_id t = n->e.c ? n->e.c->type : n->e.a->type;

		p = gen_place(g, n->e.a);
		v = normal(g, gen_load_place(g, p, n->loc), t);
		v = arithmetic(g, n->op, t, v, operand(g, n->e.b), n->loc);
	}
	v = normal(g, v, n->e.a->type);
	gen_store_place(g, p, v, n->loc);
	return kept(g, v, p);
}

static struct ir_val ternary(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val v = ir_new_reg(f);
	uint32_t other = ir_new_label(f), done = ir_new_label(f);
	bool known[LAZY_COUNT];

	gen_lazy_save(g, known);
	gen_cond(g, n->e.a, false, other);
	ir_set(f, v, operand(g, n->e.b));
	ir_goto(f, done);
	gen_lazy_restore(g, known);
	ir_place(f, other);
	ir_set(f, v, operand(g, n->e.c));
	gen_lazy_restore(g, known);
	ir_place(f, done);
	return v;
}

static struct ir_val cast(struct gen *g, const struct node *n)
{
	/* A string as an integer or pointer is its text's address. */
	if (gen_is_string(g, n->t.a))
		return gen_str_plain(g, n->t.a);
	return normal(g, operand(g, n->t.a), n->type);
}

static struct ir_val unary(struct gen *g, const struct node *n)
{
	switch (n->op) {
	case OP_NEG: return result(g, ir_neg(g->f, operand(g, n->e.a)), n->type);
	case OP_PLUS: return operand(g, n->e.a);
	case OP_BNOT:
		return result(g, ir_bin(g->f, ALU_XOR, operand(g, n->e.a), IR_I(-1)), n->type);
	case OP_LNOT: return truth(g, n);
	case OP_DEREF: return gen_load_place(g, gen_place(g, n), n->loc);
	case OP_ADDROF: return gen_place_addr(g, gen_place(g, n->e.a));
	default: return step(g, n);
	}
}

/* Returns the value as an operand of another operation. */
static struct ir_val operand(struct gen *g, const struct node *n)
{
	loc_t outer = g->f->loc;
	struct ir_val v = IR_I(0);

	g->f->loc = n->loc;
	switch (n->kind) {
	case N_INT: v = IR_I(n->i.value); break;
	case N_IDENT:
		if (n->id->kind == IDENT_BUILTIN && !gen_is_string(g, n))
			v = gen_builtin(g, n);
		else if (n->id->kind == IDENT_CTX)
			v = ir_load(g->f, g->ctx, (int32_t)n->id->ctx, 8, false);
		else if (gen_is_string(g, n))
			v = gen_str_plain(g, n);
		else
			v = gen_load_place(g, gen_place(g, n), n->loc);
		break;
	case N_INDEX:
		if (n->id && n->id->kind == IDENT_BUILTIN) {
			v = gen_uregs(g, gen_expr(g, n->e.b), n->loc);
			break;
		}
		if (!n->id && gen_is_string(g, n->e.a)) {
			v = gen_load_character(g, n);
			break;
		}
		v = gen_load_place(g, gen_place(g, n), n->loc);
		break;
	case N_EXTERN:
	case N_MEMBER:
	case N_PMEMBER: v = gen_load_place(g, gen_place(g, n), n->loc); break;
	case N_CALL: v = gen_is_string(g, n) ? gen_str_plain(g, n) : gen_subr(g, n); break;
	case N_UNARY: v = unary(g, n); break;
	case N_BINARY: v = binary(g, n); break;
	case N_ASSIGN: v = assign(g, n); break;
	case N_TERNARY: v = ternary(g, n); break;
	case N_COMMA:
		gen_effect(g, n->e.a);
		v = operand(g, n->e.b);
		break;
	case N_CAST: v = cast(g, n); break;
	case N_STR:
	case N_STRINGOF: v = gen_str_plain(g, n); break;
	default:
		diag_error(g->diags, n->loc, n->end, "D_CG_EXPR",
			   "this expression cannot be used here");
		g->failed = true;
	}
	g->f->loc = outer;
	return v;
}

struct ir_val gen_expr(struct gen *g, const struct node *n)
{
	struct ir_val v = operand(g, n);

	return is_result(n) ? normal(g, v, n->type) : v;
}

void gen_effect(struct gen *g, const struct node *n)
{
	if (n->kind == N_BODY) {
		gen_function(g, n);
		return;
	}
	if (n->kind == N_COMMA) {
		gen_effect(g, n->e.a);
		gen_effect(g, n->e.b);
	} else if (n->kind != N_ASSIGN && gen_is_aggregate_type(g, n->type)) {
		(void)gen_place(g, n);
	} else if (n->kind == N_ASSIGN || !gen_is_string(g, n)) {
		(void)gen_expr(g, n);
	} else if (n->kind == N_CALL || n->kind == N_TERNARY) {
		bool null_is_empty = g->null_is_empty;
		uint32_t known;

		g->null_is_empty = true;
		(void)gen_str_addr(g, n, &known);
		g->null_is_empty = null_is_empty;
	}
}
