/* Builds IR: registers, labels, and an instruction for each operation, with constants folded. */
#include "compile/ir/ir.h"

#include <stdarg.h>

void ir_fn_init(struct ir_fn *f, struct arena *arena, const char *name)
{
	memset(f, 0, sizeof(*f));
	f->arena = arena;
	f->name = name;
	(void)vec_add(&f->objects);
}

void ir_fn_fini(struct ir_fn *f)
{
	vec_fini(&f->ins);
	vec_fini(&f->objects);
}

struct ir_val ir_new_reg(struct ir_fn *f)
{
	return IR_R(++f->nregs);
}

uint32_t ir_new_label(struct ir_fn *f)
{
	return ++f->nlabels;
}

uint32_t ir_new_object(struct ir_fn *f, uint32_t size, const char *what)
{
	vec_push(&f->objects, (struct ir_object){ (size + 7) & ~7u, what });
	return f->objects.n - 1;
}

static struct ir_ins *ir_add(struct ir_fn *f, enum ir_op op)
{
	struct ir_ins *ins = vec_add(&f->ins);

	ins->op = (uint8_t)op;
	ins->loc = f->loc;
	return ins;
}

static struct ir_val def(struct ir_fn *f, struct ir_ins *ins)
{
	ins->d = ++f->nregs;
	return IR_R(ins->d);
}

void ir_place(struct ir_fn *f, uint32_t label)
{
	ir_add(f, IR_LABEL)->index = label;
}

struct ir_val ir_mov(struct ir_fn *f, struct ir_val a)
{
	struct ir_ins *ins = ir_add(f, IR_MOV);

	ins->a = a;
	return def(f, ins);
}

void ir_set(struct ir_fn *f, struct ir_val d, struct ir_val a)
{
	struct ir_ins *ins;

	if (a.kind == IR_REG && a.reg == d.reg)
		return;
	ins = ir_add(f, IR_MOV);
	ins->a = a;
	ins->d = d.reg;
}

static bool fold(enum ir_alu op, int64_t a, int64_t b, int64_t *ret)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

	switch (op) {
	case ALU_ADD: *ret = (int64_t)(ua + ub); return true;
	case ALU_SUB: *ret = (int64_t)(ua - ub); return true;
	case ALU_MUL: *ret = (int64_t)(ua * ub); return true;
	case ALU_AND: *ret = a & b; return true;
	case ALU_OR: *ret = a | b; return true;
	case ALU_XOR: *ret = a ^ b; return true;
	case ALU_DIV:
		if (!b)
			return false;
		*ret = (int64_t)(ua / ub);
		return true;
	case ALU_MOD:
		if (!b)
			return false;
		*ret = (int64_t)(ua % ub);
		return true;
	case ALU_SHL: *ret = (int64_t)(ua << (ub & 63)); return true;
	case ALU_SHR: *ret = (int64_t)(ua >> (ub & 63)); return true;
	case ALU_SAR: *ret = a >> (ub & 63); return true;
	default: return false;
	}
}

struct ir_val ir_bin(struct ir_fn *f, enum ir_alu op, struct ir_val a, struct ir_val b)
{
	struct ir_ins *ins;
	int64_t n;

	if (a.kind == IR_IMM && b.kind == IR_IMM && fold(op, a.imm, b.imm, &n))
		return IR_I(n);
	if (b.kind == IR_IMM && b.imm == 0 &&
	    (op == ALU_ADD || op == ALU_SUB || op == ALU_OR || op == ALU_XOR || op == ALU_SHL ||
	     op == ALU_SHR || op == ALU_SAR))
		return a;
	if (b.kind == IR_IMM && b.imm == 1 && (op == ALU_MUL || op == ALU_DIV))
		return a;
	/* A constant is the right operand where the operator commutes, because the instruction set
	 * has constants only there. */
	if (a.kind == IR_IMM &&
	    (op == ALU_ADD || op == ALU_MUL || op == ALU_AND || op == ALU_OR || op == ALU_XOR)) {
		struct ir_val t = a;

		a = b;
		b = t;
	}
	ins = ir_add(f, IR_BIN);
	ins->sub = (uint8_t)op;
	ins->a = a;
	ins->b = b;
	return def(f, ins);
}

struct ir_val ir_neg(struct ir_fn *f, struct ir_val a)
{
	struct ir_ins *ins;

	if (a.kind == IR_IMM)
		return IR_I(-(uint64_t)a.imm);
	ins = ir_add(f, IR_NEG);
	ins->a = a;
	return def(f, ins);
}

static int64_t extend(int64_t v, uint32_t size, bool sign)
{
	switch (size) {
	case 1: return sign ? (int64_t)(int8_t)v : (int64_t)(uint8_t)v;
	case 2: return sign ? (int64_t)(int16_t)v : (int64_t)(uint16_t)v;
	case 4: return sign ? (int64_t)(int32_t)v : (int64_t)(uint32_t)v;
	default: return v;
	}
}

struct ir_val ir_ext(struct ir_fn *f, struct ir_val a, uint32_t size, bool sign)
{
	struct ir_ins *ins;

	if (size >= 8)
		return a;
	if (a.kind == IR_IMM)
		return IR_I(extend(a.imm, size, sign));
	ins = ir_add(f, IR_EXT);
	ins->a = a;
	ins->size = (uint8_t)size;
	ins->sign = sign;
	return def(f, ins);
}

struct ir_val ir_swap(struct ir_fn *f, struct ir_val a, uint32_t size)
{
	struct ir_ins *ins = ir_add(f, IR_SWAP);

	ins->a = a;
	ins->size = (uint8_t)size;
	return def(f, ins);
}

/* Appends an instruction for the memory at a + off. An eBPF instruction has 16 bits for an offset.
 * A larger offset is added to the address first. */
static struct ir_ins *access_at(struct ir_fn *f, enum ir_op op, struct ir_val a, int32_t off)
{
	struct ir_ins *ins;

	if (off < INT16_MIN || off > INT16_MAX) {
		a = ir_bin(f, ALU_ADD, a, IR_I(off));
		off = 0;
	}
	ins = ir_add(f, op);
	ins->a = a;
	ins->off = off;
	return ins;
}

struct ir_val ir_load(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, bool sign)
{
	struct ir_ins *ins = access_at(f, IR_LOAD, a, off);

	ins->size = (uint8_t)size;
	ins->sign = sign && size < 8;
	return def(f, ins);
}

void ir_store(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, struct ir_val b)
{
	struct ir_ins *ins = access_at(f, IR_STORE, a, off);

	ins->b = b;
	ins->size = (uint8_t)size;
}

void ir_add_mem(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, struct ir_val b,
		bool atomic)
{
	struct ir_ins *ins = access_at(f, IR_ADD_MEM, a, off);

	ins->b = b;
	ins->size = (uint8_t)size;
	ins->sign = atomic;
}

struct ir_val ir_xchg(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, struct ir_val b)
{
	struct ir_ins *ins = access_at(f, IR_XCHG, a, off);

	ins->b = b;
	ins->size = (uint8_t)size;
	return def(f, ins);
}

struct ir_val ir_stack(struct ir_fn *f, uint32_t object, int32_t off)
{
	struct ir_ins *ins = ir_add(f, IR_STACK);

	ins->index = object;
	ins->off = off;
	return def(f, ins);
}

struct ir_val ir_load_stack(struct ir_fn *f, uint32_t object, int32_t off, uint32_t size, bool sign)
{
	struct ir_ins *ins = ir_add(f, IR_LOAD_STACK);

	ins->index = object;
	ins->off = off;
	ins->size = (uint8_t)size;
	ins->sign = sign && size < 8;
	return def(f, ins);
}

void ir_store_stack(struct ir_fn *f, uint32_t object, int32_t off, uint32_t size, struct ir_val b)
{
	struct ir_ins *ins = ir_add(f, IR_STORE_STACK);

	ins->index = object;
	ins->off = off;
	ins->size = (uint8_t)size;
	ins->b = b;
}

struct ir_val ir_map(struct ir_fn *f, uint32_t map)
{
	struct ir_ins *ins = ir_add(f, IR_MAP);

	ins->index = map;
	return def(f, ins);
}

struct ir_val ir_map_value(struct ir_fn *f, uint32_t map, int64_t offset)
{
	struct ir_ins *ins = ir_add(f, IR_MAP_VALUE);

	ins->index = map;
	ins->a = IR_I(offset);
	return def(f, ins);
}

struct ir_val ir_arg(struct ir_fn *f, uint32_t n)
{
	struct ir_ins *ins = ir_add(f, IR_ARG);

	ins->a = IR_I(n);
	if (n >= f->nargs)
		f->nargs = n + 1;
	return def(f, ins);
}

static struct ir_val call(struct ir_fn *f, enum ir_op op, uint32_t index, const char *name,
			  uint32_t nargs, va_list ap)
{
	struct ir_ins *ins = ir_add(f, op);

	ins->index = index;
	ins->name = name;
	ins->nargs = (uint8_t)nargs;
	for (uint32_t i = 0; i < nargs; i++)
		ins->args[i] = va_arg(ap, struct ir_val);
	return def(f, ins);
}

struct ir_val ir_call(struct ir_fn *f, uint32_t helper, uint32_t nargs, ...)
{
	struct ir_val v;
	va_list ap;

	va_start(ap, nargs);
	v = call(f, IR_CALL, helper, NULL, nargs, ap);
	va_end(ap);
	return v;
}

struct ir_val ir_routine(struct ir_fn *f, const char *name, uint32_t nargs, ...)
{
	struct ir_val v;
	va_list ap;

	va_start(ap, nargs);
	v = call(f, IR_ROUTINE, 0, name, nargs, ap);
	va_end(ap);
	return v;
}

static bool holds(int64_t a, enum ir_cond c, int64_t b)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

	switch (c) {
	case IF_EQ: return a == b;
	case IF_NE: return a != b;
	case IF_ULT: return ua < ub;
	case IF_ULE: return ua <= ub;
	case IF_UGT: return ua > ub;
	case IF_UGE: return ua >= ub;
	case IF_SLT: return a < b;
	case IF_SLE: return a <= b;
	case IF_SGT: return a > b;
	case IF_SGE: return a >= b;
	case IF_SET: return (a & b) != 0;
	default: return false;
	}
}

void ir_if(struct ir_fn *f, struct ir_val a, enum ir_cond c, struct ir_val b, uint32_t label)
{
	static const uint8_t swapped[] = {
		[IF_EQ] = IF_EQ,   [IF_NE] = IF_NE,   [IF_ULT] = IF_UGT, [IF_ULE] = IF_UGE,
		[IF_UGT] = IF_ULT, [IF_UGE] = IF_ULE, [IF_SLT] = IF_SGT, [IF_SLE] = IF_SGE,
		[IF_SGT] = IF_SLT, [IF_SGE] = IF_SLE, [IF_SET] = IF_SET,
	};
	struct ir_ins *ins;

	if (a.kind == IR_IMM && b.kind == IR_IMM) {
		if (holds(a.imm, c, b.imm))
			ir_goto(f, label);
		return;
	}
	if (a.kind == IR_IMM) {
		struct ir_val t = a;

		a = b;
		b = t;
		c = swapped[c];
	}
	ins = ir_add(f, IR_IF);
	ins->sub = (uint8_t)c;
	ins->a = a;
	ins->b = b;
	ins->index = label;
}

enum ir_cond ir_inverse(enum ir_cond c)
{
	static const uint8_t inverse[] = {
		[IF_EQ] = IF_NE,   [IF_NE] = IF_EQ,   [IF_ULT] = IF_UGE, [IF_ULE] = IF_UGT,
		[IF_UGT] = IF_ULE, [IF_UGE] = IF_ULT, [IF_SLT] = IF_SGE, [IF_SLE] = IF_SGT,
		[IF_SGT] = IF_SLE, [IF_SGE] = IF_SLT,
	};

	return inverse[c];
}

void ir_goto(struct ir_fn *f, uint32_t label)
{
	ir_add(f, IR_GOTO)->index = label;
}

void ir_loop(struct ir_fn *f, uint32_t label)
{
	ir_add(f, IR_LOOP)->index = label;
}

void ir_ret(struct ir_fn *f, struct ir_val a)
{
	ir_add(f, IR_RET)->a = a;
}
