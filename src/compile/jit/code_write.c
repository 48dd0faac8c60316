/* Writes machine code of eBPF functions. Writes each instruction on its own. The verifier's proofs
 * decide how short its code is.
 *
 * Native stack of a function: return address, the callee-saved registers it writes, padding to 16.
 * eBPF stacks lie in one block at `frame`, above, so no pointer of a program reaches a return
 * address. r10 (rbp) goes down by the caller's stack at each call. */
#include "compile/jit/code_private.h"

const uint8_t jit_reg[11] = { X86_RAX, X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8,
			      X86_RBX, X86_R13, X86_R14, X86_R15, X86_RBP };

/* --- jumps --- */

static int64_t target_of(const struct jit *j, uint32_t i, uint32_t to, bool *wide)
{
	*wide = false;
	if (to <= i)
		return j->at[to];
	if (j->guess[to] == UINT32_MAX) {
		*wide = true;
		return j->b.n;
	}
	/* The same distance as in the pass before, because code only gets shorter. */
	return (int64_t)j->guess[to] - j->guess[i] + j->at[i];
}

enum x86_cc code_condition(uint8_t op)
{
	static const int8_t ccs[16] = { [BPF_JEQ >> 4] = X86_E,   [BPF_JGT >> 4] = X86_A,
					[BPF_JGE >> 4] = X86_AE,  [BPF_JSET >> 4] = X86_NE,
					[BPF_JNE >> 4] = X86_NE,  [BPF_JSGT >> 4] = X86_G,
					[BPF_JSGE >> 4] = X86_GE, [BPF_JLT >> 4] = X86_B,
					[BPF_JLE >> 4] = X86_BE,  [BPF_JSLT >> 4] = X86_L,
					[BPF_JSLE >> 4] = X86_LE };

	return (enum x86_cc)ccs[op >> 4];
}

static void jump(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	uint8_t op = BPF_OP(ins->code), branch = j->facts.insn[i].branch;
	unsigned size = BPF_CLASS(ins->code) == BPF_JMP ? 8 : 4;
	uint32_t to = (uint32_t)((int64_t)i + 1 + ebpf_jump_offset(ins));
	bool wide, always = op == BPF_JA || branch == JIT_ALWAYS;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];
	int64_t target = target_of(j, i, to, &wide);

	if (!always && branch == JIT_NEVER)
		return;
	if (to <= i)
		code_spend(j, i);
	if (always) {
		bool near = to > i;

		for (uint32_t k = i + 1; near && k < to; k++)
			near = !j->facts.insn[k].reached;
		if (!near)
			x86_jmp(b, target, wide);
		return;
	}
	if (j->loaded_for == i)
		code_mem_alu_imm(j, j->loaded_size, X86_CMP, &j->loaded, ins->imm);
	else if (BPF_SRC(ins->code) == BPF_X)
		x86_rr(b, size, op == BPF_JSET ? X86_OP_TEST : x86_alu_op(X86_CMP), s, d);
	else if (op == BPF_JSET) {
		x86_rr(b, size, 0xf7, 0, d);
		x86_u32(b, (uint32_t)ins->imm);
	} else if (!ins->imm)
		x86_rr(b, size, X86_OP_TEST, d, d);
	else
		x86_alu_imm(b, size, X86_CMP, d, ins->imm);
	x86_jcc(b, code_condition(op), target, wide);
}

/* --- functions --- */

/* Returns the mask of callee-saved registers that the function writes. */
static uint32_t saved(const struct jit *j, const struct jit_fn *fn)
{
	uint32_t mask = 0;

	for (uint32_t i = fn->start; i < fn->end; i++) {
		const struct bpf_insn *ins = &j->insns[i];
		uint8_t class = BPF_CLASS(ins->code);
		unsigned r;

		if (!j->facts.insn[i].reached || j->facts.insn[i].dead)
			continue;
		if (class == BPF_JMP || class == BPF_JMP32 || class == BPF_ST)
			continue;
		r = class == BPF_STX ? ins->src_reg : ins->dst_reg;
		if (class == BPF_STX &&
		    (BPF_MODE(ins->code) != BPF_ATOMIC || !(ins->imm & BPF_FETCH)))
			continue;
		if (r >= 6 && r <= 9)
			mask |= 1u << jit_reg[r];
	}
	return mask;
}

/* Returns the index of the comparison with a constant if it alone uses the value of load i, or 0.
 * The comparison then reads memory itself. */
static uint32_t compared(const struct jit *j, uint32_t i, const struct jit_fn *fn)
{
	const struct bpf_insn *ins = &j->insns[i], *jump;
	const struct jit_fact *f = &j->facts.insn[i];
	uint32_t k = i + 1, size = jit_access_size(ins);

	if (BPF_CLASS(ins->code) != BPF_LDX || BPF_MODE(ins->code) != BPF_MEM || size < 4 ||
	    !f->proven)
		return 0;
	while (k < fn->end && j->facts.insn[k].dead && !j->facts.insn[k].target)
		k++;
	jump = &j->insns[k];
	f = &j->facts.insn[k];
	if (k == fn->end || !f->reached || f->target || !f->last_use || f->branch != JIT_EITHER ||
	    BPF_CLASS(jump->code) != BPF_JMP || BPF_SRC(jump->code) != BPF_K ||
	    !ebpf_is_jump(jump) || jump->dst_reg != ins->dst_reg)
		return 0;
	switch (BPF_OP(jump->code)) {
	case BPF_JEQ:
	case BPF_JNE: return size == 8 || jump->imm >= 0 ? k : 0;
	}
	return 0;
}

/* Returns the index of the operation if it alone uses the value of load i, or 0. The operation then
 * reads memory itself. */
static uint32_t operated(const struct jit *j, uint32_t i, const struct jit_fn *fn)
{
	const struct bpf_insn *ins = &j->insns[i], *alu;
	const struct jit_fact *f = &j->facts.insn[i];
	uint32_t k = i + 1;

	if (BPF_CLASS(ins->code) != BPF_LDX || BPF_MODE(ins->code) != BPF_MEM ||
	    jit_access_size(ins) != 8 || !f->proven)
		return 0;
	while (k < fn->end && j->facts.insn[k].dead && !j->facts.insn[k].target)
		k++;
	alu = &j->insns[k];
	f = &j->facts.insn[k];
	if (k == fn->end || !f->reached || f->target || !f->last_use ||
	    BPF_CLASS(alu->code) != BPF_ALU64 || BPF_SRC(alu->code) != BPF_X ||
	    alu->src_reg != ins->dst_reg || alu->dst_reg == ins->dst_reg)
		return 0;
	switch (BPF_OP(alu->code)) {
	case BPF_ADD:
	case BPF_SUB:
	case BPF_AND:
	case BPF_OR:
	case BPF_XOR: return k;
	}
	return 0;
}

static void instruction(struct jit *j, uint32_t i, const struct jit_fn *fn)
{
	const struct bpf_insn *ins = &j->insns[i];
	uint32_t use = compared(j, i, fn);

	if (!use)
		use = operated(j, i, fn);
	if (use) {
		j->loaded_for = use;
		j->loaded = code_memory(j, i, jit_reg[ins->src_reg], ins->off, jit_access_size(ins),
					true);
		j->loaded_size = jit_access_size(ins);
		return;
	}
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64: code_alu(j, i, ins); return;
	case BPF_LDX: code_load(j, i, ins); return;
	case BPF_ST: code_store(j, i, ins); return;
	case BPF_STX:
		if (BPF_MODE(ins->code) == BPF_ATOMIC)
			code_atomic(j, i, ins);
		else
			code_store(j, i, ins);
		return;
	case BPF_LD: code_load_imm64(j, i, ins); return;
	}
	if (ins->code == (BPF_JMP | BPF_CALL))
		code_call(j, i, ins, fn);
	else
		jump(j, i, ins);
}

static const uint8_t callee_saved[] = { X86_RBX, X86_R13, X86_R14, X86_R15 };

/* Writes the end of a function. In a thunk, this is a jump to the end of the body, unless it is
 * there already. */
static void code_leave(struct jit *j, uint32_t i, const struct jit_fn *fn, uint32_t save, bool pad)
{
	struct x86 *b = &j->b;
	bool last = true;

	if (!j->in_thunk) {
		if (pad)
			x86_alu_imm(b, 8, X86_ADD, X86_RSP, 8);
		for (uint32_t r = ARRAY_SIZE(callee_saved); r--;)
			if (save >> callee_saved[r] & 1)
				x86_pop(b, callee_saved[r]);
		x86_ret(b);
		return;
	}
	while (++i < fn->end)
		last &= !j->facts.insn[i].reached || j->facts.insn[i].dead;
	if (last)
		return;
	x86_jmp(b, b->n, true);
	if (j->nexits == j->capexits)
		vec_grow_((void **)&j->exits, &j->capexits, j->nexits + 1, sizeof(*j->exits));
	j->exits[j->nexits++] = b->n;
}

static void instructions(struct jit *j, const struct jit_fn *fn, uint32_t save, bool pad)
{
	struct x86 *b = &j->b;

	for (uint32_t i = fn->start; i < fn->end; i++) {
		const struct bpf_insn *ins = &j->insns[i];
		const struct jit_fact *f = &j->facts.insn[i];
		bool two = ebpf_is_ld_imm64(ins);

		j->at[i] = b->n;
		if (two)
			j->at[i + 1] = b->n;
		/* The call before this instruction never returns. End the firing if it does. */
		if (!f->reached && i > fn->start && f[-1].reached &&
		    j->insns[i - 1].code == (BPF_JMP | BPF_CALL)) {
			x86_rr(b, 4, x86_alu_op(X86_CMP), X86_RAX, X86_RAX);
			code_cold(j, X86_E, i - 1);
		}
		if (f->reached && !f->dead) {
			if (ins->code == (BPF_JMP | BPF_EXIT))
				code_leave(j, i, fn, save, pad);
			else
				instruction(j, i, fn);
		}
		i += two;
	}
}

static void function(struct jit *j, uint32_t index)
{
	const struct jit_fn *fn = &j->facts.fns[index];
	uint32_t save = index ? saved(j, fn) : 0; /* the thunk saves for the first */
	bool pad = !(__builtin_popcount(save) & 1);
	struct x86 *b = &j->b;

	x86_align(b, 16, 0xcc);
	j->fn_at[index] = b->n;
	for (uint32_t r = 0; r < ARRAY_SIZE(callee_saved); r++)
		if (save >> callee_saved[r] & 1)
			x86_push(b, callee_saved[r]);
	if (index == 0)
		pad = j->facts.calls || j->facts.frames;
	if (pad)
		x86_alu_imm(b, 8, X86_SUB, X86_RSP, 8);
	instructions(j, fn, save, pad);
}

void jit_body(struct jit *j)
{
	const struct jit_fn *fn = &j->facts.fns[0];
	uint32_t *at = j->at, *guess = j->guess, end;

	j->at = j->in_at;
	j->guess = j->in_guess;
	j->in_thunk = true;
	j->nexits = 0;
	instructions(j, fn, 0, false);
	end = j->b.n;
	j->at[fn->end] = end;
	for (uint32_t i = 0; i < j->nexits; i++)
		for (uint32_t k = 0; k < 4; k++)
			j->b.p[j->exits[i] - 4 + k] = (uint8_t)((end - j->exits[i]) >> 8 * k);
	j->in_thunk = false;
	j->at = at;
	j->guess = guess;
}

void jit_functions(struct jit *j)
{
	for (uint32_t i = 0; i < j->facts.nfns; i++) {
		if (j->facts.fns[i].reached) {
			function(j, i);
			continue;
		}
		for (uint32_t k = j->facts.fns[i].start; k < j->facts.fns[i].end; k++)
			j->at[k] = j->b.n;
	}
	j->at[j->ninsns] = j->b.n;
}
