/* Shortens operands, in each function along straight code. A copied register is replaced by the
 * register it was copied from, and a register with a constant by the constant. liveness.c then
 * removes instructions whose results are not read.
 *
 * Instructions keep their places and effects, so the verifier's facts stay true.
 */
#include "compile/jit/jit_private.h"

/* The register equals register `of` + delta. */
struct copy {
	uint8_t of;
	int32_t delta;
};

struct copies {
	struct copy r[11];
};

static void nothing_known(struct copies *c)
{
	for (uint8_t i = 0; i < 11; i++)
		c->r[i] = (struct copy){ i, 0 };
}

static void written(struct copies *c, uint8_t reg)
{
	for (uint8_t i = 0; i < 11; i++)
		if (i == reg || c->r[i].of == reg)
			c->r[i] = (struct copy){ i, 0 };
}

static uint8_t same_as(const struct copies *c, uint8_t reg)
{
	return c->r[reg].delta ? reg : c->r[reg].of;
}

/* Returns the base of a memory operand and adjusts its offset. */
static uint8_t base(const struct copies *c, uint8_t reg, int16_t *off)
{
	int64_t at = (int64_t)*off + c->r[reg].delta;

	if (at < INT16_MIN || at > INT16_MAX)
		return reg;
	*off = (int16_t)at;
	return c->r[reg].of;
}

static void moved(struct copies *c, uint8_t dst, uint8_t src)
{
	struct copy from = c->r[src];

	if (from.of == dst) /* dst is copied back, perhaps with something added */
		from = (struct copy){ src, 0 };
	if (dst == src)
		return;
	written(c, dst);
	c->r[dst] = from;
}

static void added(struct copies *c, uint8_t reg, int32_t n)
{
	struct copy was = c->r[reg];
	int64_t delta = (int64_t)was.delta + n;

	written(c, reg);
	if (was.of != reg && delta >= INT32_MIN && delta <= INT32_MAX)
		c->r[reg] = (struct copy){ was.of, (int32_t)delta };
}

/* Returns true when v fits an instruction's immediate, which is sign-extended. */
static bool fits(uint64_t v)
{
	return (int64_t)v == (int32_t)v;
}

static void alu(struct copies *c, struct bpf_insn *ins, const struct jit_fact *f)
{
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64, imm = BPF_SRC(ins->code) == BPF_K;
	uint8_t op = BPF_OP(ins->code);
	uint64_t v = wide ? f->value : (uint64_t)(int32_t)f->value;

	if (op == BPF_NEG || op == BPF_END) {
		written(c, ins->dst_reg);
		return;
	}
	if (!imm && f->constant && !ins->off && fits(v)) {
		if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
			v &= wide ? 63 : 31;
		if (v || (op != BPF_DIV && op != BPF_MOD)) {
			ins->code = (uint8_t)(ins->code & ~BPF_X) | BPF_K;
			ins->src_reg = 0;
			ins->imm = (int32_t)v;
			imm = true;
		}
	}
	if (!imm)
		ins->src_reg = same_as(c, ins->src_reg);
	if (op == BPF_MOV && !imm && wide && !ins->off)
		moved(c, ins->dst_reg, ins->src_reg);
	else if (op == BPF_ADD && imm && wide)
		added(c, ins->dst_reg, ins->imm);
	else
		written(c, ins->dst_reg);
}

bool jit_constant_atomic(const struct bpf_insn *ins, const struct jit_fact *f)
{
	return BPF_MODE(ins->code) == BPF_ATOMIC && BPF_CLASS(ins->code) == BPF_STX &&
	       !(ins->imm & BPF_FETCH) && f->constant &&
	       fits(BPF_SIZE(ins->code) == BPF_W ? (uint64_t)(int32_t)f->value : f->value);
}

static void store(struct copies *c, struct bpf_insn *ins, const struct jit_fact *f)
{
	uint64_t v = BPF_SIZE(ins->code) == BPF_DW ? f->value : (uint64_t)(int32_t)f->value;

	if (BPF_MODE(ins->code) == BPF_ATOMIC && ins->imm & BPF_FETCH) {
		written(c, ins->imm == BPF_CMPXCHG ? BPF_REG_0 : ins->src_reg);
		return;
	}
	ins->dst_reg = base(c, ins->dst_reg, &ins->off);
	if (BPF_CLASS(ins->code) != BPF_STX)
		return;
	if (BPF_MODE(ins->code) != BPF_ATOMIC && f->constant && fits(v)) {
		ins->code = (uint8_t)(BPF_ST | BPF_MEM | BPF_SIZE(ins->code));
		ins->src_reg = 0;
		ins->imm = (int32_t)v;
		return;
	}
	ins->src_reg = same_as(c, ins->src_reg);
}

static void jump(const struct copies *c, struct bpf_insn *ins, const struct jit_fact *f)
{
	bool wide = BPF_CLASS(ins->code) == BPF_JMP;
	uint64_t v = wide ? f->value : (uint64_t)(int32_t)f->value;

	ins->dst_reg = same_as(c, ins->dst_reg);
	if (BPF_SRC(ins->code) != BPF_X)
		return;
	if (f->constant && fits(v)) {
		ins->code = (uint8_t)(ins->code & ~BPF_X) | BPF_K;
		ins->src_reg = 0;
		ins->imm = (int32_t)v;
	} else {
		ins->src_reg = same_as(c, ins->src_reg);
	}
}

static void instruction(struct copies *c, struct bpf_insn *ins, struct jit_fact *f)
{
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64: alu(c, ins, f); return;
	case BPF_LD: written(c, ins->dst_reg); return;
	case BPF_LDX:
		ins->src_reg = base(c, ins->src_reg, &ins->off);
		written(c, ins->dst_reg);
		return;
	case BPF_ST:
	case BPF_STX: store(c, ins, f); return;
	}
	switch (BPF_OP(ins->code)) {
	case BPF_CALL:
		f->arg = same_as(c, BPF_REG_1);
		for (int r = BPF_REG_0; r <= BPF_REG_5; r++)
			written(c, (uint8_t)r);
		return;
	case BPF_EXIT:
	case BPF_JA: return;
	default: jump(c, ins, f);
	}
}

/* Returns true for a jump that is always taken, over code that is never reached. The instruction at
 * its target can only come from this jump. */
static bool goes_on(const struct bpf_insn *insns, const struct jit_facts *f, uint32_t k)
{
	int64_t to = (int64_t)k + 1 + ebpf_jump_offset(&insns[k]);

	if (BPF_OP(insns[k].code) != BPF_JA && f->insn[k].branch != JIT_ALWAYS)
		return false;
	for (int64_t i = k + 1; i < to; i++)
		if (f->insn[i].reached)
			return false;
	return to > k;
}

void jit_copies(struct bpf_insn *insns, struct jit_facts *f)
{
	for (uint32_t i = 0; i < f->nfns; i++) {
		const struct jit_fn *fn = &f->fns[i];
		struct copies c;

		if (!fn->reached)
			continue;
		for (uint32_t k = fn->start; k < fn->end; k++) {
			if (f->insn[k].reached && ebpf_is_jump(&insns[k]) &&
			    f->insn[k].branch != JIT_NEVER && !goes_on(insns, f, k))
				f->insn[(int64_t)k + 1 + ebpf_jump_offset(&insns[k])].target = true;
			k += ebpf_is_ld_imm64(&insns[k]);
		}
		nothing_known(&c);
		for (uint32_t k = fn->start; k < fn->end; k++) {
			if (f->insn[k].target)
				nothing_known(&c);
			if (f->insn[k].reached)
				instruction(&c, &insns[k], &f->insn[k]);
			k += ebpf_is_ld_imm64(&insns[k]);
		}
	}
}
