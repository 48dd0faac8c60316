/* Writes machine code of arithmetic, loads, stores, atomics and addresses. */
#include "compile/jit/code_private.h"

bool jit_near(const struct jit *j, uint64_t addr)
{
	int64_t rel = (int64_t)(addr - j->env->code);

	return rel > INT32_MIN / 2 && rel < INT32_MAX / 2;
}

void jit_at(struct jit *j, unsigned size, unsigned op, unsigned reg, uint64_t addr, unsigned tmp)
{
	if (jit_near(j, addr)) {
		x86_rip(&j->b, size, op, reg, (int64_t)(addr - j->env->code));
	} else {
		wrote(j, tmp);
		x86_mov_imm(&j->b, tmp, addr);
		x86_rm(&j->b, size, op, reg, tmp, 0);
	}
}

int64_t jit_agent(const struct jit *j, enum wire_agent_entry e)
{
	return (int64_t)(j->env->agent + j->env->head->entry[e] - j->env->code);
}

struct jit_operand code_memory(struct jit *j, uint32_t i, unsigned reg, int32_t off, uint32_t size,
			       bool load)
{
	const struct jit_fact *f = &j->facts.insn[i];

	switch (f->where) {
	case JIT_IN_THREAD: return (struct jit_operand){ .base = THREAD, .off = (int32_t)f->place };
	case JIT_AT:
		if (jit_near(j, f->place))
			return (struct jit_operand){ .rip = true,
						     .at = (int64_t)(f->place - j->env->code) };
		wrote(j, T0);
		x86_mov_imm(&j->b, T0, f->place);
		return (struct jit_operand){ .base = T0 };
	}
	if (f->proven)
		return (struct jit_operand){ .base = reg, .off = off };
	code_check_access(j, i, reg, off, size, load);
	return (struct jit_operand){ .base = T0 };
}

static void mem(struct jit *j, unsigned size, unsigned op, unsigned reg,
		const struct jit_operand *p)
{
	if (p->rip)
		x86_rip(&j->b, size, op, reg, p->at);
	else
		x86_rm(&j->b, size, op, reg, p->base, p->off);
}

static void mem_store_imm(struct jit *j, unsigned size, const struct jit_operand *p, int32_t imm)
{
	if (p->rip)
		x86_rip_store_imm(&j->b, size, p->at, imm);
	else
		x86_store_imm(&j->b, size, p->base, p->off, imm);
}

void code_mem_alu_imm(struct jit *j, unsigned size, enum x86_alu op, const struct jit_operand *p,
		      int32_t imm)
{
	if (p->rip)
		x86_rip_alu_imm(&j->b, size, op, p->at, imm);
	else
		x86_alu_mem_imm(&j->b, size, op, p->base, p->off, imm);
}

/* --- arithmetic --- */

static void shift(struct jit *j, const struct bpf_insn *ins, unsigned size, enum x86_shift op)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];

	if (BPF_SRC(ins->code) == BPF_K) {
		if (ins->imm)
			x86_shift_imm(b, size, op, d, (unsigned)ins->imm);
		else if (size == 4)
			x86_rr(b, 4, X86_OP_STORE, d, d);
		return;
	}
	wrote(j, T1);
	/* A shift by 0 keeps a 32-bit destination, but must clear its upper half. */
	if (size == 4)
		x86_rr(b, 4, X86_OP_STORE, d, d);
	if (s == X86_RCX) {
		x86_shift_cl(b, size, op, d);
	} else if (d == X86_RCX) {
		x86_mov_rr(b, T1, X86_RCX);
		x86_mov_rr(b, X86_RCX, s);
		x86_shift_cl(b, size, op, T1);
		x86_mov_rr(b, X86_RCX, T1);
	} else {
		x86_mov_rr(b, T1, X86_RCX);
		x86_mov_rr(b, X86_RCX, s);
		x86_shift_cl(b, size, op, d);
		x86_mov_rr(b, X86_RCX, T1);
	}
}

/* x / 0 is 0, x % 0 is x; the lowest number / -1 is itself, % -1 is 0. */
static void divide(struct jit *j, const struct bpf_insn *ins, unsigned size)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];
	bool mod = BPF_OP(ins->code) == BPF_MOD, is_signed = ins->off == 1;
	bool imm = BPF_SRC(ins->code) == BPF_K;
	uint32_t zero = 0, minus = 0, end = 0, end2 = 0;
	int32_t k = ins->imm;

	if (imm && !is_signed && k > 0 && !(k & (k - 1))) {
		if (mod)
			x86_alu_imm(b, size, X86_AND, d, k - 1);
		else if (k > 1)
			x86_shift_imm(b, size, X86_SHR, d, (unsigned)__builtin_ctz((unsigned)k));
		else if (size == 4)
			x86_rr(b, 4, X86_OP_STORE, d, d);
		return;
	}
	wrote(j, T0);
	wrote(j, T1);
	wrote(j, T2);
	if (imm)
		x86_mov_imm(b, T0, size == 8 ? (uint64_t)(int64_t)k : (uint32_t)k);
	else
		x86_rr(b, size, X86_OP_STORE, s, T0);
	if (!imm) {
		x86_rr(b, size, X86_OP_TEST, T0, T0);
		zero = x86_jcc_over(b, X86_E);
	}
	if (is_signed) {
		x86_alu_imm(b, size, X86_CMP, T0, -1);
		minus = x86_jcc_over(b, X86_E);
	}
	if (d != X86_RAX)
		x86_mov_rr(b, T1, X86_RAX);
	if (d != X86_RDX)
		x86_mov_rr(b, T2, X86_RDX);
	if (d != X86_RAX)
		x86_rr(b, size, X86_OP_STORE, d, X86_RAX);
	if (is_signed) {
		if (size == 8)
			x86_byte(b, 0x48);
		x86_byte(b, 0x99); /* cqo, cdq */
	} else {
		x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDX, X86_RDX);
	}
	x86_rr(b, size, X86_OP_GROUP3, is_signed ? X86_IDIV : X86_DIV, T0);
	x86_rr(b, size, X86_OP_STORE, mod ? X86_RDX : X86_RAX, T0);
	if (d != X86_RAX)
		x86_mov_rr(b, X86_RAX, T1);
	if (d != X86_RDX)
		x86_mov_rr(b, X86_RDX, T2);
	x86_mov_rr(b, d, T0);
	if (minus) {
		end = x86_jmp_over(b);
		x86_land(b, minus);
		if (mod)
			x86_rr(b, 4, x86_alu_op(X86_XOR), d, d);
		else
			x86_rr(b, size, X86_OP_GROUP3, X86_NEG, d);
	}
	if (zero) {
		end2 = x86_jmp_over(b);
		x86_land(b, zero);
		if (!mod)
			x86_rr(b, 4, x86_alu_op(X86_XOR), d, d);
		else if (size == 4)
			x86_rr(b, 4, X86_OP_STORE, d, d);
		x86_land(b, end2);
	}
	if (end)
		x86_land(b, end);
}

static void swap(struct jit *j, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg];
	bool turn = BPF_CLASS(ins->code) == BPF_ALU64 || BPF_SRC(ins->code) == BPF_TO_BE;

	switch (ins->imm) {
	case 16:
		if (turn)
			x86_shift_imm(b, 2, X86_ROL, d, 8);
		x86_rr(b, 4, X86_OP_MOVZX16, d, d);
		break;
	case 32:
		if (turn)
			x86_bswap(b, 4, d);
		else
			x86_rr(b, 4, X86_OP_STORE, d, d);
		break;
	case 64:
		if (turn)
			x86_bswap(b, 8, d);
	}
}

static void move(struct jit *j, const struct bpf_insn *ins, unsigned size)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];

	if (BPF_SRC(ins->code) == BPF_K) {
		if (!ins->imm)
			x86_rr(b, 4, x86_alu_op(X86_XOR), d, d);
		else
			x86_mov_imm(b, d,
				    size == 8 ? (uint64_t)(int64_t)ins->imm : (uint32_t)ins->imm);
		return;
	}
	switch (ins->off) {
	case 8: x86_rr(b, size, X86_OP_MOVSX8, d, s); break;
	case 16: x86_rr(b, size, X86_OP_MOVSX16, d, s); break;
	case 32: x86_rr(b, size, X86_OP_MOVSXD, d, s); break;
	default:
		if (size == 8)
			x86_mov_rr(b, d, s);
		else
			x86_rr(b, 4, X86_OP_STORE, s, d);
	}
}

/* Returns true for an instruction that only sets the program's result, which a thunk does not
 * use. */
static bool is_result(const struct bpf_insn *ins)
{
	return ins->dst_reg == BPF_REG_0 && ins[1].code == (BPF_JMP | BPF_EXIT);
}

void code_alu(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];
	unsigned size = BPF_CLASS(ins->code) == BPF_ALU64 ? 8 : 4;
	bool imm = BPF_SRC(ins->code) == BPF_K;
	enum x86_alu op;

	if (!is_result(ins))
		wrote(j, d);
	else if (j->in_thunk)
		return;
	j->clobbered |= 1u << d;
	switch (BPF_OP(ins->code)) {
	case BPF_MOV: move(j, ins, size); return;
	case BPF_END: swap(j, ins); return;
	case BPF_NEG: x86_rr(b, size, X86_OP_GROUP3, X86_NEG, d); return;
	case BPF_MUL:
		if (imm)
			x86_imul_imm(b, size, d, d, ins->imm);
		else
			x86_rr(b, size, X86_OP_IMUL, d, s);
		return;
	case BPF_DIV:
	case BPF_MOD: divide(j, ins, size); return;
	case BPF_LSH: shift(j, ins, size, X86_SHL); return;
	case BPF_RSH: shift(j, ins, size, X86_SHR); return;
	case BPF_ARSH: shift(j, ins, size, X86_SAR); return;
	case BPF_ADD: op = X86_ADD; break;
	case BPF_SUB: op = X86_SUB; break;
	case BPF_OR: op = X86_OR; break;
	case BPF_AND: op = X86_AND; break;
	default: op = X86_XOR;
	}
	if (imm)
		x86_alu_imm(b, size, op, d, ins->imm);
	else if (j->loaded_for == i)
		mem(j, size, x86_alu_op(op) | 2, d, &j->loaded);
	else
		x86_rr(b, size, x86_alu_op(op), s, d);
}

/* --- memory --- */

void code_load(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	unsigned d = jit_reg[ins->dst_reg];
	uint32_t size = jit_access_size(ins);
	struct jit_operand p;

	wrote(j, d);
	p = code_memory(j, i, jit_reg[ins->src_reg], ins->off, size, true);
	if (BPF_MODE(ins->code) == EBPF_MEMSX)
		mem(j, 8,
		    size == 1   ? X86_OP_MOVSX8
		    : size == 2 ? X86_OP_MOVSX16
				: X86_OP_MOVSXD,
		    d, &p);
	else if (size >= 4)
		mem(j, size, X86_OP_LOAD, d, &p);
	else
		mem(j, 4, size == 1 ? X86_OP_MOVZX8 : X86_OP_MOVZX16, d, &p);
}

void code_store(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	uint32_t size = jit_access_size(ins);
	struct jit_operand p = code_memory(j, i, jit_reg[ins->dst_reg], ins->off, size, false);

	if (BPF_CLASS(ins->code) == BPF_ST)
		mem_store_imm(j, size, &p, ins->imm);
	else
		mem(j, size, X86_OP_STORE, jit_reg[ins->src_reg], &p);
}

static enum x86_alu atomic_alu(int32_t imm)
{
	switch (imm & ~BPF_FETCH) {
	case BPF_ADD: return X86_ADD;
	case BPF_OR: return X86_OR;
	case BPF_AND: return X86_AND;
	default: return X86_XOR;
	}
}

static void lock(struct jit *j, bool alone)
{
	if (!alone)
		x86_byte(&j->b, 0xf0);
}

/* rm op= src, src = the value of rm before. */
static void fetch(struct jit *j, const struct bpf_insn *ins, unsigned base, int32_t off,
		  uint32_t size, bool alone)
{
	struct x86 *b = &j->b;
	unsigned s = jit_reg[ins->src_reg];
	uint32_t top;

	wrote(j, s);
	wrote(j, T0);
	wrote(j, T1);
	wrote(j, T2);
	if (alone) { /* memory of this thread only: no lock, and no xchg (which locks) */
		x86_rm(b, size, X86_OP_LOAD, T1, base, off);
		if (ins->imm == BPF_XCHG) {
			x86_rm(b, size, X86_OP_STORE, s, base, off);
		} else {
			x86_mov_rr(b, T2, T1);
			x86_rr(b, size, x86_alu_op(atomic_alu(ins->imm)), s, T2);
			x86_rm(b, size, X86_OP_STORE, T2, base, off);
		}
		x86_mov_rr(b, s, T1);
		return;
	}
	if (ins->imm == BPF_XCHG) {
		x86_rm(b, size, X86_OP_XCHG, s, base, off);
		return;
	}
	if (ins->imm == (BPF_ADD | BPF_FETCH)) {
		lock(j, false);
		x86_rm(b, size, X86_OP_XADD, s, base, off);
		return;
	}
	/* Compare and exchange until no other write came between. rax must hold the old value. */
	if (base != T0) {
		x86_rm(b, 8, X86_OP_LEA, T0, base, off);
		off = 0;
	}
	x86_mov_rr(b, T1, X86_RAX); /* also the operand if src is r0 */
	x86_rm(b, size, X86_OP_LOAD, X86_RAX, T0, off);
	top = b->n;
	x86_mov_rr(b, T2, X86_RAX);
	x86_rr(b, size, x86_alu_op(atomic_alu(ins->imm)), s == X86_RAX ? T1 : s, T2);
	lock(j, false);
	x86_rm(b, size, X86_OP_CMPXCHG, T2, T0, off);
	x86_jcc(b, X86_NE, top, false);
	if (s != X86_RAX) {
		x86_mov_rr(b, s, X86_RAX);
		x86_mov_rr(b, X86_RAX, T1);
	}
}

void code_atomic(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	bool alone = j->facts.insn[i].alone;
	uint32_t size = jit_access_size(ins);
	unsigned s = jit_reg[ins->src_reg];
	struct jit_operand p = code_memory(j, i, jit_reg[ins->dst_reg], ins->off, size, false);

	if (ins->imm == BPF_CMPXCHG) {
		wrote(j, X86_RAX);
		lock(j, alone);
		mem(j, size, X86_OP_CMPXCHG, s, &p);
		if (size == 4)
			x86_rr(b, 4, X86_OP_STORE, X86_RAX, X86_RAX);
	} else if (ins->imm & BPF_FETCH) {
		if (p.rip) {
			wrote(j, T0);
			x86_rip(b, 8, X86_OP_LEA, T0, p.at);
			p = (struct jit_operand){ .base = T0 };
		}
		fetch(j, ins, p.base, p.off, size, alone);
	} else if (jit_constant_atomic(ins, &j->facts.insn[i])) {
		lock(j, alone);
		code_mem_alu_imm(j, size, atomic_alu(ins->imm), &p,
				 (int32_t)j->facts.insn[i].value);
	} else {
		lock(j, alone);
		mem(j, size, x86_alu_op(atomic_alu(ins->imm)), s, &p);
	}
}

/* reg = addr, by the shortest instruction. */
void code_load_address(struct jit *j, unsigned reg, uint64_t addr)
{
	if (addr > UINT32_MAX && jit_near(j, addr))
		x86_rip(&j->b, 8, X86_OP_LEA, reg, (int64_t)(addr - j->env->code));
	else
		x86_mov_imm(&j->b, reg, addr);
}

/* reg = the thread's address + off. */
void code_thread_address(struct jit *j, unsigned reg, uint64_t off)
{
	if (off <= INT32_MAX) {
		x86_rm(&j->b, 8, X86_OP_LEA, reg, THREAD, (int32_t)off);
	} else {
		x86_mov_imm(&j->b, reg, off);
		x86_rr(&j->b, 8, x86_alu_op(X86_ADD), THREAD, reg);
	}
}

void code_load_imm64(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	unsigned d = jit_reg[ins->dst_reg];
	const struct wire_map *m;

	wrote(j, d);
	switch (ins->src_reg) {
	case 0:
		x86_mov_imm(&j->b, d, (uint32_t)ins->imm | (uint64_t)(uint32_t)ins[1].imm << 32);
		break;
	case BPF_PSEUDO_MAP_FD: code_load_address(j, d, j->env->map_addrs[ins->imm]); break;
	case EBPF_PSEUDO_MAP_VALUE:
		m = &j->env->maps[ins->imm];
		if (m->kind == WIRE_MAP_ARRAY)
			code_load_address(j, d, m->base + (uint32_t)ins[1].imm);
		else
			code_thread_address(j, d, m->base + (uint32_t)ins[1].imm);
		break;
	default: /* a callback's address: only bpf_loop may use it */
		x86_rr(&j->b, 4, x86_alu_op(X86_XOR), d, d);
	}
}
