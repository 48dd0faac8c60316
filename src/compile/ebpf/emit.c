/* Emits the eBPF instructions of one IR function. */
#include "compile/ebpf/ebpf.h"

#include <assert.h>

struct jump {
	uint32_t insn, label;
};

struct emitter {
	struct ebpf_code *c;
	const struct ir_fn *f;
	struct ebpf_frame frame;
	uint32_t start;
	uint32_t *label_pos;    /* UINT32_MAX: the label has no position yet */
	VEC(struct jump) jumps; /* label 0: the offset is final */
	uint32_t first;         /* the first jump that may lead to a label without a position */
	loc_t loc;
};

enum { R0 = BPF_REG_0, SCRATCH = BPF_REG_5, FP = BPF_REG_10 };

void ebpf_code_init(struct ebpf_code *c)
{
	memset(c, 0, sizeof(*c));
}

void ebpf_code_fini(struct ebpf_code *c)
{
	vec_fini(&c->insns);
	vec_fini(&c->locs);
	vec_fini(&c->relocs);
}

static void emit_put(struct emitter *e, int code, int dst, int src, int off, int32_t imm)
{
	assert(off == (int16_t)off);
	vec_push(&e->c->insns, (struct bpf_insn){ .code = (uint8_t)code,
						  .dst_reg = (uint8_t)dst & 15,
						  .src_reg = (uint8_t)src & 15,
						  .off = (int16_t)off,
						  .imm = imm });
	vec_push(&e->c->locs, e->loc);
}

static void put_imm64(struct emitter *e, int dst, int src, uint64_t v)
{
	emit_put(e, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, (int32_t)(uint32_t)v);
	emit_put(e, 0, 0, 0, 0, (int32_t)(uint32_t)(v >> 32));
}

static void reloc(struct emitter *e, enum reloc_kind kind, uint32_t target, int64_t addend,
		  const char *name)
{
	vec_push(&e->c->relocs, (struct reloc){ e->c->insns.n, kind, target, addend, name });
}

static int size_code(uint32_t size)
{
	return size == 1 ? BPF_B : size == 2 ? BPF_H : size == 4 ? BPF_W : BPF_DW;
}

static bool fits(int64_t v)
{
	return v == (int32_t)v;
}

static void mov_imm(struct emitter *e, int reg, int64_t v)
{
	if (fits(v))
		emit_put(e, BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, (int32_t)v);
	else
		put_imm64(e, reg, 0, (uint64_t)v);
}

static void mov(struct emitter *e, int dst, int src)
{
	if (dst != src)
		emit_put(e, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

/* Returns a register that holds v: its own, or tmp after loading v into it. */
static int in_reg(struct emitter *e, struct ir_val v, int tmp)
{
	const struct ebpf_place *p;

	if (v.kind == IR_IMM) {
		mov_imm(e, tmp, v.imm);
		return tmp;
	}
	p = &e->frame.regs[v.reg];
	if (p->reg)
		return p->reg;
	emit_put(e, BPF_LDX | BPF_MEM | BPF_DW, tmp, FP, p->slot, 0);
	return tmp;
}

static void make_constant(struct emitter *e, const struct ir_ins *ins, int reg)
{
	if (ins->op == IR_STACK) {
		mov(e, reg, FP);
		emit_put(e, BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0,
			 e->frame.objects[ins->index] + ins->off);
	} else if (ins->op == IR_MAP) {
		reloc(e, RELOC_MAP, ins->index, 0, NULL);
		put_imm64(e, reg, BPF_PSEUDO_MAP_FD, 0);
	} else {
		reloc(e, RELOC_MAP_VALUE, ins->index, ins->a.imm, NULL);
		put_imm64(e, reg, BPF_PSEUDO_MAP_VALUE, (uint64_t)ins->a.imm << 32);
	}
}

/* Moves v into reg. */
static void to_reg(struct emitter *e, struct ir_val v, int reg)
{
	int r = in_reg(e, v, reg);

	mov(e, reg, r);
}

/* Returns the register to compute d in. done() stores it at d's place. */
static int dest(struct emitter *e, uint32_t d)
{
	return d && e->frame.regs[d].reg ? e->frame.regs[d].reg : R0;
}

static void done(struct emitter *e, uint32_t d, int reg)
{
	const struct ebpf_place *p = &e->frame.regs[d];

	if (!d)
		return;
	if (p->reg)
		mov(e, p->reg, reg);
	else if (p->slot)
		emit_put(e, BPF_STX | BPF_MEM | BPF_DW, FP, reg, p->slot, 0);
}

static const uint8_t alu_codes[] = {
	[ALU_ADD] = BPF_ADD, [ALU_SUB] = BPF_SUB, [ALU_MUL] = BPF_MUL,  [ALU_DIV] = BPF_DIV,
	[ALU_MOD] = BPF_MOD, [ALU_AND] = BPF_AND, [ALU_OR] = BPF_OR,    [ALU_XOR] = BPF_XOR,
	[ALU_SHL] = BPF_LSH, [ALU_SHR] = BPF_RSH, [ALU_SAR] = BPF_ARSH,
};

static bool is_shift(enum ir_alu op)
{
	return op == ALU_SHL || op == ALU_SHR || op == ALU_SAR;
}

static void emit_bin(struct emitter *e, const struct ir_ins *ins)
{
	int d = dest(e, ins->d), code = BPF_ALU64 | alu_codes[ins->sub];

	if (ins->b.kind == IR_IMM && fits(ins->b.imm)) {
		/* A count in a register is taken modulo 64. A constant count must be below 64. */
		int32_t imm = (int32_t)(is_shift(ins->sub) ? ins->b.imm & 63 : ins->b.imm);

		to_reg(e, ins->a, d);
		emit_put(e, code | BPF_K, d, 0, 0, imm);
	} else {
		int b = in_reg(e, ins->b, SCRATCH);

		if (b == d && !(ins->a.kind == IR_REG && e->frame.regs[ins->a.reg].reg == d)) {
			mov(e, SCRATCH, b);
			b = SCRATCH;
		}
		to_reg(e, ins->a, d);
		emit_put(e, code | BPF_X, d, b, 0, 0);
	}
	done(e, ins->d, d);
}

static void sign_extend(struct emitter *e, int reg, uint32_t size)
{
	emit_put(e, BPF_ALU64 | BPF_LSH | BPF_K, reg, 0, 0, (int32_t)(64 - 8 * size));
	emit_put(e, BPF_ALU64 | BPF_ARSH | BPF_K, reg, 0, 0, (int32_t)(64 - 8 * size));
}

static void emit_ext(struct emitter *e, const struct ir_ins *ins)
{
	int d = dest(e, ins->d), a;

	if (ins->size == 4 && !ins->sign) {
		a = in_reg(e, ins->a, d);
		emit_put(e, BPF_ALU | BPF_MOV | BPF_X, d, a, 0, 0);
	} else {
		to_reg(e, ins->a, d);
		if (ins->sign)
			sign_extend(e, d, ins->size);
		else
			emit_put(e, BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0,
				 ins->size == 1 ? 0xff : 0xffff);
	}
	done(e, ins->d, d);
}

static void emit_load(struct emitter *e, uint32_t d, int base, int off, uint32_t size, bool sign)
{
	int r = dest(e, d);

	emit_put(e, BPF_LDX | BPF_MEM | size_code(size), r, base, off, 0);
	if (sign)
		sign_extend(e, r, size);
	done(e, d, r);
}

static void emit_store(struct emitter *e, int base, int off, uint32_t size, struct ir_val b)
{
	if (b.kind == IR_IMM && fits(b.imm))
		emit_put(e, BPF_ST | BPF_MEM | size_code(size), base, 0, off, (int32_t)b.imm);
	else
		emit_put(e, BPF_STX | BPF_MEM | size_code(size), base, in_reg(e, b, SCRATCH), off,
			 0);
}

static void emit_add_mem(struct emitter *e, const struct ir_ins *ins)
{
	int base = in_reg(e, ins->a, R0);

	if (ins->sign) {
		emit_put(e, BPF_STX | BPF_ATOMIC | size_code(ins->size), base,
			 in_reg(e, ins->b, SCRATCH), ins->off, BPF_ADD);
	} else {
		/* R0 may hold the base: compute the sum in SCRATCH, and add a constant directly. */
		emit_put(e, BPF_LDX | BPF_MEM | size_code(ins->size), SCRATCH, base, ins->off, 0);
		if (ins->b.kind == IR_IMM && fits(ins->b.imm)) {
			emit_put(e, BPF_ALU64 | BPF_ADD | BPF_K, SCRATCH, 0, 0,
				 (int32_t)ins->b.imm);
			emit_put(e, BPF_STX | BPF_MEM | size_code(ins->size), base, SCRATCH,
				 ins->off, 0);
		} else if (base != R0) {
			emit_put(e, BPF_ALU64 | BPF_ADD | BPF_X, SCRATCH, in_reg(e, ins->b, R0), 0,
				 0);
			emit_put(e, BPF_STX | BPF_MEM | size_code(ins->size), base, SCRATCH,
				 ins->off, 0);
		} else {
			int b = in_reg(e, ins->b, R0);

			emit_put(e, BPF_ALU64 | BPF_ADD | BPF_X, SCRATCH, b, 0, 0);
			base = in_reg(e, ins->a, R0);
			emit_put(e, BPF_STX | BPF_MEM | size_code(ins->size), base, SCRATCH,
				 ins->off, 0);
		}
	}
}

static void emit_xchg(struct emitter *e, const struct ir_ins *ins)
{
	int base = in_reg(e, ins->a, R0);

	to_reg(e, ins->b, SCRATCH);
	emit_put(e, BPF_STX | BPF_ATOMIC | size_code(ins->size), base, SCRATCH, ins->off, BPF_XCHG);
	done(e, ins->d, SCRATCH);
}

/* Returns true when an argument other than t still comes from register t. */
static bool is_source(const int *src, int n, int t)
{
	for (int u = 1; u <= n; u++)
		if (u != t && src[u] == t)
			return true;
	return false;
}

/* Moves the arguments to r1 and on. Registers come first, as a parallel move that breaks cycles
 * through r0. The other values follow. */
static void emit_args(struct emitter *e, const struct ir_ins *ins)
{
	int n = ins->nargs, src[6], blocked;
	bool moved;

	for (int t = 1; t <= n; t++) {
		const struct ir_val *v = &ins->args[t - 1];

		src[t] = v->kind == IR_REG && e->frame.regs[v->reg].reg ? e->frame.regs[v->reg].reg
									: -1;
	}
	do {
		blocked = 0;
		moved = false;
		for (int t = 1; t <= n; t++) {
			if (src[t] < 0 || src[t] == t)
				continue;
			if (is_source(src, n, t)) {
				blocked = t;
				continue;
			}
			mov(e, t, src[t]);
			src[t] = t;
			moved = true;
		}
		if (blocked && !moved) {
			mov(e, R0, blocked);
			for (int u = 1; u <= n; u++)
				if (u != blocked && src[u] == blocked)
					src[u] = R0;
		}
	} while (blocked);
	for (int t = 1; t <= n; t++) {
		const struct ir_val *v = &ins->args[t - 1];

		if (src[t] >= 0)
			continue;
		if (v->kind == IR_REG && e->frame.late[v->reg])
			make_constant(e, &e->f->ins.v[e->frame.late[v->reg] - 1], t);
		else
			to_reg(e, *v, t);
	}
}

static void jump(struct emitter *e, uint32_t label)
{
	vec_push(&e->jumps, (struct jump){ e->c->insns.n, label });
}

static void emit_if(struct emitter *e, const struct ir_ins *ins)
{
	static const uint8_t codes[] = {
		[IF_EQ] = BPF_JEQ,   [IF_NE] = BPF_JNE,   [IF_ULT] = BPF_JLT,  [IF_ULE] = BPF_JLE,
		[IF_UGT] = BPF_JGT,  [IF_UGE] = BPF_JGE,  [IF_SLT] = BPF_JSLT, [IF_SLE] = BPF_JSLE,
		[IF_SGT] = BPF_JSGT, [IF_SGE] = BPF_JSGE, [IF_SET] = BPF_JSET,
	};
	int a = in_reg(e, ins->a, R0);

	if (ins->b.kind == IR_IMM && fits(ins->b.imm)) {
		jump(e, ins->index);
		emit_put(e, BPF_JMP | codes[ins->sub] | BPF_K, a, 0, 0, (int32_t)ins->b.imm);
	} else {
		int b = in_reg(e, ins->b, SCRATCH);

		jump(e, ins->index);
		emit_put(e, BPF_JMP | codes[ins->sub] | BPF_X, a, b, 0, 0);
	}
}

/* Inserts an island of jumps. A jump reaches 32767 instructions. An island comes before the oldest
 * jump to a label further on exceeds that reach. It holds one jump for each such label, and all
 * jumps to the label go to the island. The text jumps over the island.
 *
 *	     if r1 == 0 goto L9          if r1 == 0 goto I9
 *	     ...                         ...
 *	                                 goto on
 *	                            I9:  goto L9
 *	                            on:  ...
 */
static void put_island(struct emitter *e)
{
	uint32_t *landings = xcalloc(e->f->nlabels + 1, sizeof(*landings)), n = e->jumps.n,
		 over = e->c->insns.n;

	emit_put(e, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	for (uint32_t i = e->first; i < n; i++) {
		struct jump *j = &e->jumps.v[i];
		uint32_t label = j->label;

		if (!label || e->label_pos[label] != UINT32_MAX)
			continue;
		if (!landings[label]) {
			landings[label] = e->c->insns.n;
			vec_push(&e->jumps, (struct jump){ e->c->insns.n, label });
			emit_put(e, BPF_JMP | BPF_JA, 0, 0, 0, 0);
			j = &e->jumps.v[i];
		}
		e->c->insns.v[j->insn].off = (int16_t)(landings[label] - j->insn - 1);
		j->label = 0;
	}
	e->c->insns.v[over].off = (int16_t)(e->c->insns.n - over - 1);
	e->first = n;
	free(landings);
}

static bool needs_island(struct emitter *e)
{
	enum { FAR = 16000 };

	while (e->first < e->jumps.n && (!e->jumps.v[e->first].label ||
					 e->label_pos[e->jumps.v[e->first].label] != UINT32_MAX))
		e->first++;
	return e->first < e->jumps.n && e->c->insns.n - e->jumps.v[e->first].insn > FAR;
}

static bool next_is_label(const struct emitter *e, uint32_t i, uint32_t label)
{
	while (++i < e->f->ins.n && e->f->ins.v[i].op == IR_LABEL)
		if (e->f->ins.v[i].index == label)
			return true;
	return false;
}

static void emit_ins(struct emitter *e, uint32_t i)
{
	const struct ir_ins *ins = &e->f->ins.v[i];
	int d = dest(e, ins->d), r;

	e->loc = ins->loc;
	switch ((enum ir_op)ins->op) {
	case IR_MOV:
		if (ins->a.kind == IR_REG && !e->frame.regs[ins->d].reg) {
			done(e, ins->d, in_reg(e, ins->a, R0));
			break;
		}
		to_reg(e, ins->a, d);
		done(e, ins->d, d);
		break;
	case IR_ARG: done(e, ins->d, (int)ins->a.imm + 1); break;
	case IR_BIN: emit_bin(e, ins); break;
	case IR_NEG:
		to_reg(e, ins->a, d);
		emit_put(e, BPF_ALU64 | BPF_NEG, d, 0, 0, 0);
		done(e, ins->d, d);
		break;
	case IR_EXT: emit_ext(e, ins); break;
	case IR_SWAP:
		to_reg(e, ins->a, d);
		emit_put(e, BPF_ALU | BPF_END | BPF_TO_BE, d, 0, 0, ins->size * 8);
		done(e, ins->d, d);
		break;
	case IR_LOAD:
		r = in_reg(e, ins->a, R0);
		emit_load(e, ins->d, r, ins->off, ins->size, ins->sign);
		break;
	case IR_STORE:
		r = in_reg(e, ins->a, R0);
		emit_store(e, r, ins->off, ins->size, ins->b);
		break;
	case IR_ADD_MEM: emit_add_mem(e, ins); break;
	case IR_XCHG: emit_xchg(e, ins); break;
	case IR_STACK:
	case IR_MAP:
	case IR_MAP_VALUE:
		if (e->frame.late[ins->d])
			break;
		make_constant(e, ins, d);
		done(e, ins->d, d);
		break;
	case IR_LOAD_STACK:
		emit_load(e, ins->d, FP, e->frame.objects[ins->index] + ins->off, ins->size,
			  ins->sign);
		break;
	case IR_STORE_STACK:
		emit_store(e, FP, e->frame.objects[ins->index] + ins->off, ins->size, ins->b);
		break;
	case IR_CALL:
		emit_args(e, ins);
		emit_put(e, BPF_JMP | BPF_CALL, 0, 0, 0, (int32_t)ins->index);
		done(e, ins->d, R0);
		break;
	case IR_ROUTINE:
		emit_args(e, ins);
		reloc(e, RELOC_ROUTINE, 0, 0, ins->name);
		emit_put(e, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -1);
		done(e, ins->d, R0);
		break;
	case IR_IF: emit_if(e, ins); break;
	case IR_GOTO:
		if (next_is_label(e, i, ins->index))
			break;
		jump(e, ins->index);
		emit_put(e, BPF_JMP | BPF_JA, 0, 0, 0, 0);
		break;
	case IR_LOOP:
		jump(e, ins->index);
		emit_put(e, BPF_JMP | BPF_JA, 0, 0, 0, 0);
		break;
	case IR_LABEL: e->label_pos[ins->index] = e->c->insns.n; break;
	case IR_RET:
		to_reg(e, ins->a, R0);
		emit_put(e, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
		break;
	case IR_OP_COUNT: break;
	}
}

bool ebpf_emit(struct ebpf_code *c, const struct ir_fn *f, const char **ret_why)
{
	struct emitter e = { .c = c, .f = f, .start = c->insns.n };
	bool ok = true;

	ebpf_allocate(f, &e.frame);
	if (e.frame.size > EBPF_FRAME_MAX) {
		*ret_why = "the clause needs more stack than eBPF has";
		ebpf_frame_fini(&e.frame);
		return false;
	}
	e.label_pos = xcalloc(f->nlabels + 1, sizeof(*e.label_pos));
	memset(e.label_pos, 0xff, (f->nlabels + 1) * sizeof(*e.label_pos));
	for (uint32_t i = 0; i < f->ins.n; i++) {
		if (needs_island(&e))
			put_island(&e);
		emit_ins(&e, i);
	}
	for (uint32_t i = 0; i < e.jumps.n; i++) {
		if (!e.jumps.v[i].label)
			continue;

		int64_t off = (int64_t)e.label_pos[e.jumps.v[i].label] - e.jumps.v[i].insn - 1;

		if (off > INT16_MAX || off < INT16_MIN) {
			*ret_why = "the loop is too long: it spans more than 32767 instructions";
			ok = false;
		}
		c->insns.v[e.jumps.v[i].insn].off = (int16_t)off;
	}
	vec_fini(&e.jumps);
	free(e.label_pos);
	ebpf_frame_fini(&e.frame);
	return ok;
}
