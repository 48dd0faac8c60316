/* Machine code of eBPF functions. Each instruction is written by itself; what the verifier proved
 * decides how much of it.
 *
 * Native stack of a function: return address, the callee-saved registers it writes, padding to 16.
 * eBPF stacks lie in one block at `frame`, above: no pointer of a program reaches a return address.
 * r10 (rbp) goes down by the caller's stack at each call.
 */
#include <assert.h>
#include <errno.h>

#include "compile/jit/jit_int.h"
#include "data/image.h"
#include "wire/routines.h"

const uint8_t jit_reg[11] = { X86_RAX, X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8,
			      X86_RBX, X86_R13, X86_R14, X86_R15, X86_RBP };

enum { T0 = X86_R11, T1 = X86_R10, T2 = X86_R9, THREAD = X86_R12 };
enum {
	OFF_BUDGET = offsetof(struct wire_thread, budget),
	OFF_REGS = offsetof(struct wire_own, regs),
	OFF_FRAME = offsetof(struct wire_own, frame),
	OFF_COOKIE = offsetof(struct wire_thread, cookie),
	OFF_GEN = offsetof(struct wire_thread, gen)
};

/* Caller-saved registers: what a helper may clobber. */
enum {
	HELPER_CLOBBERS = 1 << X86_RAX | 1 << X86_RCX | 1 << X86_RDX | 1 << X86_RSI | 1 << X86_RDI |
			  1 << X86_R8 | 1 << X86_R9 | 1 << X86_R10 | 1 << X86_R11
};

static void wrote(struct jit *j, unsigned reg)
{
	j->clobbered |= 1u << reg;
}

bool jit_near(const struct jit *j, uint64_t addr)
{
	int64_t rel = (int64_t)(addr - j->env->code);

	return rel > INT32_MIN / 2 && rel < INT32_MAX / 2;
}

int64_t jit_agent(const struct jit *j, enum wire_agent_entry e)
{
	return (int64_t)(j->env->agent + j->env->head->entry[e] - j->env->code);
}

/* A jump here is taken when something is wrong at `insn`. */
static struct jit_cold *cold(struct jit *j, enum x86_cc cc, uint32_t insn)
{
	struct jit_cold *c;

	x86_jcc(&j->b, cc, j->b.n, true);
	if (j->ncold == j->capcold)
		vec_grow_((void **)&j->cold, &j->capcold, j->ncold + 1, sizeof(*j->cold));
	c = &j->cold[j->ncold++];
	*c = (struct jit_cold){ .jump = j->b.n, .insn = insn, .fail = true };
	return c;
}

/* Offsets into the constants behind the code. */
enum {
	CONST_AREA,
	CONST_SIZE,
	CONST_SHARED,
	CONST_THREADS,
	CONST_STACKS,
	CONST_LIMIT /* of loads: the size less 1, 2, 4, 8 bytes */,
	CONST_STORE_LIMIT = CONST_LIMIT + 4,
	CONSTS = CONST_STORE_LIMIT + 4
};

static int64_t const_at(const struct jit *j, int i)
{
	return (int64_t)j->consts + i * 8;
}

int64_t jit_threads(const struct jit *j)
{
	return const_at(j, CONST_THREADS);
}

/* T0 = base + off, if `size` bytes there are the program's; T1 is lost. */
static void check_access(struct jit *j, uint32_t insn, unsigned base, int32_t off, uint32_t size,
			 bool load)
{
	struct x86 *b = &j->b;
	struct jit_cold *c;

	wrote(j, T0);
	wrote(j, T1);
	x86_rm(b, 8, X86_OP_LEA, T0, base, off);
	x86_mov_rr(b, T1, T0);
	x86_rip(b, 8, 0x2b, T1, const_at(j, load ? CONST_AREA : CONST_SHARED));
	x86_rip(b, 8, 0x3b, T1,
		const_at(j, (load ? CONST_LIMIT : CONST_STORE_LIMIT) + __builtin_ctz(size)));
	c = cold(j, X86_A, insn);
	c->fail = false;
	c->size = (uint8_t)size;
	c->load = load;
	c->back = b->n;
}

static struct jit_operand memory(struct jit *j, uint32_t i, unsigned reg, int32_t off,
				 uint32_t size, bool load)
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
	check_access(j, i, reg, off, size, load);
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

static void mem_alu_imm(struct jit *j, unsigned size, enum x86_alu op, const struct jit_operand *p,
			int32_t imm)
{
	if (p->rip)
		x86_rip_alu_imm(&j->b, size, op, p->at, imm);
	else
		x86_alu_mem_imm(&j->b, size, op, p->base, p->off, imm);
}

static uint32_t insn_size(const struct bpf_insn *ins)
{
	static const uint8_t size[] = { 4, 2, 1, 8 };

	return size[BPF_SIZE(ins->code) >> 3];
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
	/* A count of 0 leaves 32-bit destinations as they are, upper half included. */
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

static void alu(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	unsigned d = jit_reg[ins->dst_reg], s = jit_reg[ins->src_reg];
	unsigned size = BPF_CLASS(ins->code) == BPF_ALU64 ? 8 : 4;
	bool imm = BPF_SRC(ins->code) == BPF_K;
	enum x86_alu op;

	wrote(j, d);
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

static void load(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	unsigned d = jit_reg[ins->dst_reg];
	uint32_t size = insn_size(ins);
	struct jit_operand p;

	wrote(j, d);
	p = memory(j, i, jit_reg[ins->src_reg], ins->off, size, true);
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

static void store(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	uint32_t size = insn_size(ins);
	struct jit_operand p = memory(j, i, jit_reg[ins->dst_reg], ins->off, size, false);

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

/* rm op= src, src = what was there. */
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
	if (alone) { /* of this thread only, which nothing interrupts: no lock, and no xchg (it locks by itself) */
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
	/* compare and exchange until nobody came between; rax must hold the old value */
	if (base != T0) {
		x86_rm(b, 8, X86_OP_LEA, T0, base, off);
		off = 0;
	}
	x86_mov_rr(b, T1, X86_RAX); /* also the operand, where src is r0 */
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

static void atomic(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	struct x86 *b = &j->b;
	bool alone = j->facts.insn[i].alone;
	uint32_t size = insn_size(ins);
	unsigned s = jit_reg[ins->src_reg];
	struct jit_operand p = memory(j, i, jit_reg[ins->dst_reg], ins->off, size, false);

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
		mem_alu_imm(j, size, atomic_alu(ins->imm), &p, (int32_t)j->facts.insn[i].value);
	} else {
		lock(j, alone);
		mem(j, size, x86_alu_op(atomic_alu(ins->imm)), s, &p);
	}
}

/* reg = the address, by the shortest way there is. */
static void load_address(struct jit *j, unsigned reg, uint64_t addr)
{
	if (addr > UINT32_MAX && jit_near(j, addr))
		x86_rip(&j->b, 8, X86_OP_LEA, reg, (int64_t)(addr - j->env->code));
	else
		x86_mov_imm(&j->b, reg, addr);
}

/* reg = the thread's address + off. */
static void thread_address(struct jit *j, unsigned reg, uint64_t off)
{
	if (off <= INT32_MAX) {
		x86_rm(&j->b, 8, X86_OP_LEA, reg, THREAD, (int32_t)off);
	} else {
		x86_mov_imm(&j->b, reg, off);
		x86_rr(&j->b, 8, x86_alu_op(X86_ADD), THREAD, reg);
	}
}

static void load_imm64(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	unsigned d = jit_reg[ins->dst_reg];
	const struct wire_map *m;

	wrote(j, d);
	switch (ins->src_reg) {
	case 0:
		x86_mov_imm(&j->b, d, (uint32_t)ins->imm | (uint64_t)(uint32_t)ins[1].imm << 32);
		break;
	case BPF_PSEUDO_MAP_FD: load_address(j, d, j->env->map_addrs[ins->imm]); break;
	case EBPF_PSEUDO_MAP_VALUE:
		m = &j->env->maps[ins->imm];
		if (m->kind == WIRE_MAP_ARRAY)
			load_address(j, d, m->base + (uint32_t)ins[1].imm);
		else
			thread_address(j, d, m->base + (uint32_t)ins[1].imm);
		break;
	default: /* a callback's address: bpf_loop knows it, no one else may */
		x86_rr(&j->b, 4, x86_alu_op(X86_XOR), d, d);
	}
}

/* --- calls --- */

/* reg = where the running generation begins. One bit of the word: who else writes the slot is not
 * to choose an address. */
static void load_gen(struct jit *j, unsigned reg, const struct wire_map *m)
{
	assert(m->gen_stride <= INT32_MAX);
	x86_rm(&j->b, 4, X86_OP_LOAD, reg, THREAD, OFF_GEN);
	x86_alu_imm(&j->b, 4, X86_AND, reg, 1);
	x86_imul_imm(&j->b, 8, reg, reg, (int32_t)m->gen_stride);
}

/* rax = address of the value at rax bytes from the map's first. */
static void value_address(struct jit *j, const struct wire_map *m)
{
	struct x86 *b = &j->b;

	wrote(j, T0);
	if (m->kind == WIRE_MAP_ARRAY) {
		load_address(j, T0, m->base);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
		return;
	}
	if (m->kind == WIRE_MAP_AGG_ARRAY) {
		load_gen(j, T0, m);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
	}
	if (m->base <= INT32_MAX) {
		x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX, (int32_t)m->base);
	} else {
		thread_address(j, T0, m->base);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
	}
}

static void known_address(struct jit *j, const struct wire_map *m, uint64_t off)
{
	struct x86 *b = &j->b;

	if (m->kind == WIRE_MAP_ARRAY) {
		load_address(j, X86_RAX, m->base + off);
	} else if (m->kind == WIRE_MAP_AGG_ARRAY && m->gen_stride <= INT32_MAX &&
		   m->base + off <= INT32_MAX) {
		load_gen(j, X86_RAX, m);
		x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX, (int32_t)(m->base + off));
	} else if (m->kind == WIRE_MAP_AGG_ARRAY) {
		x86_mov_imm(b, X86_RAX, off);
		value_address(j, m);
	} else {
		thread_address(j, X86_RAX, m->base + off);
	}
}

static void lookup(struct jit *j, uint32_t i)
{
	const struct jit_fact *f = &j->facts.insn[i];
	const struct wire_map *m = &j->env->maps[f->map];
	bool scratch = m->kind == WIRE_MAP_THREAD_ARRAY && m->role == MAP_SCRATCH;
	struct x86 *b = &j->b;
	unsigned base = X86_RSI;
	int32_t off = 0;
	uint32_t key = f->key, none;

	wrote(j, X86_RAX);
	if (f->key_known) {
		if (scratch)
			key %= m->max_entries;
		if (key < m->max_entries)
			known_address(j, m, (uint64_t)key * m->stride);
		else
			x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
		return;
	}
	/* eBPF's r3, r4 are gone with the call */
	wrote(j, X86_RCX);
	if (scratch)
		wrote(j, X86_RDX);
	if (f->key_own) {
		base = X86_RBP;
		off = f->key_at;
	} else if (f->check & 1 << 2) {
		check_access(j, i, X86_RSI, 0, 4, true);
		base = T0;
	}
	if (scratch) {
		x86_rm(b, 4, X86_OP_LOAD, X86_RAX, base, off);
		if (m->max_entries & (m->max_entries - 1)) {
			x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDX, X86_RDX);
			x86_mov_imm(b, X86_RCX, m->max_entries);
			x86_rr(b, 4, X86_OP_GROUP3, X86_DIV, X86_RCX);
			x86_mov_rr(b, X86_RAX, X86_RDX);
		} else {
			x86_alu_imm(b, 4, X86_AND, X86_RAX, (int32_t)(m->max_entries - 1));
		}
		x86_imul_imm(b, 8, X86_RAX, X86_RAX, (int32_t)m->stride);
		value_address(j, m);
		return;
	}
	x86_rm(b, 4, X86_OP_LOAD, X86_RCX, base, off);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	x86_alu_imm(b, 4, X86_CMP, X86_RCX, (int32_t)m->max_entries);
	none = x86_jcc_over(b, X86_AE);
	x86_imul_imm(b, 8, X86_RAX, X86_RCX, (int32_t)m->stride);
	value_address(j, m);
	x86_land(b, none);
}

static void go_down(struct jit *j, uint32_t stack)
{
	if (stack)
		x86_alu_imm(&j->b, 8, X86_SUB, X86_RBP, (int32_t)stack);
}

static void go_up(struct jit *j, uint32_t stack)
{
	if (stack)
		x86_alu_imm(&j->b, 8, X86_ADD, X86_RBP, (int32_t)stack);
}

static void spend(struct jit *j, uint32_t i)
{
	x86_alu_mem_imm(&j->b, 8, X86_SUB, THREAD, OFF_BUDGET, 1);
	cold(j, X86_B, i);
}

static void loop(struct jit *j, uint32_t i, uint32_t stack)
{
	enum { INDEX = 8, COUNT = 16, ARG = 24 };
	struct x86 *b = &j->b;
	uint32_t flags, many, done, top;

	x86_mov_imm(b, X86_RAX, (uint64_t)-EINVAL);
	x86_rr(b, 8, X86_OP_TEST, X86_RCX, X86_RCX);
	flags = x86_jcc_over(b, X86_NE);
	x86_mov_imm(b, X86_RAX, (uint64_t)-E2BIG);
	x86_alu_imm(b, 4, X86_CMP, X86_RDI, JIT_LOOPS);
	many = x86_jcc_over(b, X86_A);
	x86_rr(b, 4, X86_OP_STORE, X86_RDI, X86_RAX);
	x86_push(b, X86_RDX);
	x86_push(b, X86_RAX);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDI, X86_RDI);
	x86_push(b, X86_RDI);
	x86_push(b, X86_RDI);
	go_down(j, stack);
	top = b->n;
	x86_rm(b, 8, X86_OP_LOAD, X86_RDI, X86_RSP, INDEX);
	x86_rm(b, 8, 0x3b, X86_RDI, X86_RSP, COUNT);
	done = x86_jcc_over(b, X86_AE);
	spend(j, i);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSI, X86_RSP, ARG);
	x86_call(b, j->fn_at[j->facts.insn[i].func]);
	x86_alu_mem_imm(b, 8, X86_ADD, X86_RSP, INDEX, 1);
	x86_rr(b, 8, X86_OP_TEST, X86_RAX, X86_RAX);
	x86_jcc(b, X86_E, top, false);
	x86_land(b, done);
	x86_rm(b, 8, X86_OP_LOAD, X86_RAX, X86_RSP, INDEX);
	go_up(j, stack);
	x86_alu_imm(b, 8, X86_ADD, X86_RSP, 32);
	x86_land(b, flags);
	x86_land(b, many);
}

/* A map that is not known yet: is it one of those the helper works on? */
static void check_map(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	struct x86 *b = &j->b;
	uint32_t found[64], n = 0, last = UINT32_MAX;

	for (uint32_t m = 0; m < j->env->nmaps; m++)
		if (jit_map_usable(j->env, m, h->id))
			last = m;
	if (last == UINT32_MAX) /* there is none: never equal */
		x86_mov_imm(b, T1, 0);
	for (uint32_t m = 0; m <= last && last != UINT32_MAX; m++) {
		if (!jit_map_usable(j->env, m, h->id))
			continue;
		x86_mov_imm(b, T1, j->env->map_addrs[m]);
		if (m == last || n == ARRAY_SIZE(found))
			break;
		x86_rr(b, 8, x86_alu_op(X86_CMP), T1, X86_RDI);
		found[n++] = x86_jcc_over(b, X86_E);
	}
	x86_rr(b, 8, x86_alu_op(X86_CMP), T1, X86_RDI);
	cold(j, X86_NE, i);
	while (n)
		x86_land(b, found[--n]);
}

/* Arguments that were not proven. T0, T1, T2 are lost. */
static void check_args(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	const struct jit_fact *f = &j->facts.insn[i];
	struct x86 *b = &j->b;

	wrote(j, T0);
	for (uint32_t a = 0; h->args[a]; a++) {
		unsigned reg = jit_reg[a + 1];
		uint32_t null = 0;

		if (!(f->check & 1 << (a + 1)))
			continue;
		if (h->args[a] == 'm' && h->id != BPF_FUNC_map_lookup_elem) {
			check_map(j, i, h);
			continue;
		}
		x86_mov_rr(b, T0, reg);
		switch (h->args[a]) {
		case 'm': x86_mov_imm(b, T1, sizeof(struct wire_map)); break;
		case 'k': x86_mov_imm(b, T1, jit_key_size(j->env, f->map, h->id)); break;
		case 'V':
			x86_rr(b, 8, X86_OP_TEST, T0, T0);
			null = x86_jcc_over(b, X86_E);
			/* fall through */
		case 'v': x86_mov_imm(b, T1, jit_value_size(j->env, f->map, h->id)); break;
		case 'l': x86_mov_rr(b, T1, jit_reg[a + 2]); break;
		case 'q': x86_rr(b, 4, X86_OP_STORE, jit_reg[a], T1); break;
		case 'g': x86_mov_imm(b, T1, 8); break;
		case 'S': x86_mov_imm(b, T1, sizeof(struct wire_stack)); break;
		case 'W': x86_mov_imm(b, T1, sizeof(struct wire_walk)); break;
		case 'O': x86_mov_imm(b, T1, sizeof(struct wire_unwind_offsets)); break;
		default: /* helpers take 32 bits of it */
			x86_rr(b, 4, X86_OP_STORE, jit_reg[a + 2], jit_reg[a + 2]);
			x86_mov_rr(b, T1, jit_reg[a + 2]);
		}
		x86_call(b, j->range);
		cold(j, X86_B, i);
		if (null)
			x86_land(b, null);
	}
}

/* CLOCK_MONOTONIC from the processor's counter, as the agent has it. */
static void clock_now(struct jit *j)
{
	const uint64_t clock = j->env->area + offsetof(struct wire_area, clock);
	struct x86 *b = &j->b;

	if (!j->env->tsc) {
		wrote(j, T0);
		x86_call(b, j->clock);
		return;
	}
	wrote(j, X86_RDX);
	x86_byte(b, 0x0f); /* rdtsc */
	x86_byte(b, 0x31);
	x86_shift_imm(b, 8, X86_SHL, X86_RDX, 32);
	x86_rr(b, 8, x86_alu_op(X86_OR), X86_RDX, X86_RAX);
	jit_at(j, 8, X86_OP_GROUP3, X86_MUL, clock + offsetof(struct wire_clock, mult), T0);
	jit_at(j, 8, X86_OP_LOAD, X86_RAX, clock + offsetof(struct wire_clock, base_ns), T0);
	x86_rr(b, 8, x86_alu_op(X86_ADD), X86_RDX, X86_RAX);
}

/* rax = d_quantize_bucket(v): 63 is 0; 64 + k: [2^k, 2^(k+1)); 62 - k: (-2^(k+1), -2^k]; -2^63:
 * 0. */
static void quantize_bucket(struct jit *j, uint32_t i)
{
	unsigned v = jit_reg[j->facts.insn[i].arg];
	struct x86 *b = &j->b;
	struct jit_cold *c;

	x86_rr(b, 8, X86_OP_TEST, v, v);
	c = cold(j, X86_S, i);
	c->bucket = true;
	if (j->env->lzcnt) {
		x86_byte(b, 0xf3);
		x86_rr(b, 8, X86_OP_BSR, X86_RAX, v);     /* lzcnt */
		x86_alu_imm(b, 4, X86_XOR, X86_RAX, 127); /* 127 - n */
	} else {
		wrote(j, T0);
		x86_rr(b, 8, X86_OP_BSR, X86_RAX, v);
		x86_mov_imm(b, T0, UINT32_MAX);
		x86_rr(b, 8, X86_OP_CMOVE, X86_RAX, T0); /* of 0 */
		x86_alu_imm(b, 4, X86_ADD, X86_RAX, 64);
	}
	j->cold[j->ncold - 1].back = b->n;
}

/* ... of a negative number. */
static void negative_bucket(struct jit *j, uint32_t i)
{
	struct x86 *b = &j->b;
	uint32_t more;

	x86_mov_rr(b, X86_RAX, jit_reg[j->facts.insn[i].arg]);
	x86_rr(b, 8, X86_OP_GROUP3, X86_NEG, X86_RAX);
	x86_rr(b, 8, X86_OP_BSR, X86_RAX, X86_RAX);
	x86_alu_imm(b, 4, X86_SUB, X86_RAX, 62);
	x86_rr(b, 4, X86_OP_GROUP3, X86_NEG, X86_RAX);
	more = x86_jcc_over(b, X86_NS);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX); /* of -1 */
	x86_land(b, more);
}

/* d_scratch_get of bpf/: the first slot of this thread that is not in use; 0: none is. */
static void scratch_get(struct jit *j, const struct wire_map *m)
{
	struct x86 *b = &j->b;
	uint32_t found[WIRE_SCRATCH_SLOTS], n = 0, end;

	thread_address(j, X86_RAX, m->base);
	for (; n < WIRE_SCRATCH_SLOTS && n < m->max_entries; n++) {
		if (n)
			x86_alu_imm(b, 8, X86_ADD, X86_RAX, (int32_t)m->stride);
		x86_alu_mem_imm(b, 8, X86_CMP, X86_RAX, 0, 0);
		found[n] = x86_jcc_over(b, X86_E);
	}
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	end = x86_jmp_over(b);
	while (n)
		x86_land(b, found[--n]);
	x86_store_imm(b, 8, X86_RAX, 0, 1);
	x86_land(b, end);
}

/* A record's room, where all is well: the ring's one writer is this thread. Else the agent is
 * asked. */
static void ring_reserve(struct jit *j, uint32_t i)
{
	/* AHEAD: a line that the tracer has read comes back by the time it is written again */
	enum {
		HEAD = offsetof(struct wire_ring, head),
		TAIL = offsetof(struct wire_ring, tail),
		AHEAD = 1024
	};
	const struct wire_map *m = &j->env->maps[j->facts.insn[i].map];
	const uint32_t n = j->facts.insn[i].record;
	const int32_t need = (int32_t)((n + 7 + WIRE_RING_HEAD) & ~7u), ring = (int32_t)m->base;
	struct x86 *b = &j->b;
	uint32_t first = j->ncold;

	wrote(j, X86_R8);
	wrote(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, ring + HEAD);
	x86_rm(b, 8, X86_OP_LEA, X86_R8, X86_RAX, need);
	x86_mov_rr(b, T0, X86_R8);
	x86_rm(b, 8, 0x2b, T0, THREAD, ring + TAIL);
	x86_alu_imm(b, 8, X86_CMP, T0, (int32_t)m->max_entries);
	cold(j, X86_A, i);
	x86_alu_imm(b, 4, X86_AND, X86_RAX, (int32_t)m->max_entries - 1);
	x86_alu_imm(b, 4, X86_CMP, X86_RAX, (int32_t)m->max_entries - need);
	cold(j, X86_A, i);
	x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX,
	       ring + (int32_t)sizeof(struct wire_ring) + WIRE_RING_HEAD);
	x86_rm(b, 4, X86_OP_PREFETCH, X86_PREFETCHW, X86_RAX, AHEAD);
	x86_mov_imm(b, T0, WIRE_RING_BUSY | n); /* the padding: 0 */
	x86_rm(b, 8, X86_OP_STORE, T0, X86_RAX, -WIRE_RING_HEAD);
	x86_rm(b, 8, X86_OP_STORE, X86_R8, THREAD, ring + HEAD);
	for (; first < j->ncold; first++) {
		j->cold[first].reserve = true;
		j->cold[first].back = b->n;
	}
}

/* ... by the agent: the ring is full, or the record would not stand in one piece. */
static void ask_for_room(struct jit *j, uint32_t i)
{
	static const uint8_t args[] = { X86_RDI, X86_RSI, X86_RDX };
	struct x86 *b = &j->b;

	for (uint32_t k = 0; k < ARRAY_SIZE(args); k++)
		x86_push(b, args[k]);
	load_address(j, X86_RDI, j->env->map_addrs[j->facts.insn[i].map]);
	x86_mov_imm(b, X86_RSI, j->facts.insn[i].record);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDX, X86_RDX);
	x86_call(b, j->reserve);
	for (uint32_t k = ARRAY_SIZE(args); k--;)
		x86_pop(b, args[k]);
}

static void cpu_number(struct jit *j)
{
	enum { SELECTOR = 0x7b }; /* its limit: node << 12 | cpu */
	struct x86 *b = &j->b;
	uint32_t good;

	if (j->env->rdpid) {
		x86_byte(b, 0xf3); /* rdpid rax */
		x86_byte(b, 0x0f);
		x86_byte(b, 0xc7);
		x86_byte(b, 0xf8);
		x86_alu_imm(b, 4, X86_AND, X86_RAX, 0xfff);
		return;
	}
	wrote(j, T0);
	x86_mov_imm(b, X86_RAX, SELECTOR);
	x86_rr(b, 4, X86_OP_LSL, X86_RAX, X86_RAX);
	good = x86_jcc_over(b, X86_E);
	x86_call(b, j->cpu);
	x86_land(b, good);
	x86_alu_imm(b, 4, X86_AND, X86_RAX, 0xfff);
}

/* Helpers that are a few instructions. */
static bool short_helper(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	struct x86 *b = &j->b;
	uint32_t none;

	switch (h->id) {
	case BPF_FUNC_get_attach_cookie:
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, OFF_COOKIE);
		return true;
	case BPF_FUNC_get_func_ip: x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX); return true;
	case BPF_FUNC_get_stackid: x86_mov_imm(b, X86_RAX, (uint64_t)-EFAULT); return true;
	case BPF_FUNC_ktime_get_ns: clock_now(j); return true;
	case JIT_QUANTIZE_BUCKET: quantize_bucket(j, i); return true;
	case JIT_SCRATCH_GET: scratch_get(j, &j->env->maps[j->facts.insn[i].map]); return true;
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf:
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, offsetof(struct wire_thread, task));
		return true;
	case BPF_FUNC_get_current_pid_tgid: /* neighbours */
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, offsetof(struct wire_thread, tid));
		return true;
	case BPF_FUNC_task_pt_regs:
		jit_own(j, X86_RAX);
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, X86_RAX, OFF_REGS);
		return true;
	case BPF_FUNC_task_storage_get:
		if (!jit_inline(j->env, &j->insns[i], &j->facts.insn[i]))
			return false;
		if (j->facts.insn[i].there) {
			thread_address(j, X86_RAX, j->env->maps[j->facts.insn[i].map].base);
			return true;
		}
		x86_mov_rr(b, X86_RAX, X86_RSI);
		x86_rr(b, 8, X86_OP_TEST, X86_RAX, X86_RAX);
		none = x86_jcc_over(b, X86_E);
		thread_address(j, X86_RAX, j->env->maps[j->facts.insn[i].map].base);
		x86_land(b, none);
		return true;
	}
	return false;
}

static void call(struct jit *j, uint32_t i, const struct bpf_insn *ins, const struct jit_fn *fn)
{
	const struct jit_fact *f = &j->facts.insn[i];
	const struct jit_helper *h;
	struct x86 *b = &j->b;

	if (ins->src_reg == BPF_PSEUDO_CALL) {
		go_down(j, fn->stack);
		x86_call(b, j->fn_at[f->func]);
		go_up(j, fn->stack);
		return;
	}
	h = jit_helper((uint32_t)ins->imm);
	wrote(j, X86_RAX);
	if (h->id == BPF_FUNC_loop) {
		j->clobbered |= 1 << X86_RDI | 1 << X86_RSI;
		loop(j, i, fn->stack);
		return;
	}
	if (short_helper(j, i, h))
		return;
	if (jit_inline_lookup(j->env, ins, f)) {
		lookup(j, i);
		return;
	}
	if (jit_mostly_inline(j->env, ins, f)) {
		switch (h->id) {
		case BPF_FUNC_ringbuf_reserve: ring_reserve(j, i); return;
		case BPF_FUNC_get_smp_processor_id: cpu_number(j); return;
		}
		x86_store_imm(b, 4, X86_RDI, -WIRE_RING_HEAD, (int32_t)f->record); /* submit */
		x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
		return;
	}
	j->clobbered |= HELPER_CLOBBERS;
	check_args(j, i, h);
	x86_mov_rr(b, X86_R9, THREAD);
	x86_call(b, jit_agent(j, (enum wire_agent_entry)h->agent));
}

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
	/* as far as it was the pass before: code only gets shorter */
	return (int64_t)j->guess[to] - j->guess[i] + j->at[i];
}

static void jump(struct jit *j, uint32_t i, const struct bpf_insn *ins)
{
	static const int8_t ccs[16] = { [BPF_JEQ >> 4] = X86_E,   [BPF_JGT >> 4] = X86_A,
					[BPF_JGE >> 4] = X86_AE,  [BPF_JSET >> 4] = X86_NE,
					[BPF_JNE >> 4] = X86_NE,  [BPF_JSGT >> 4] = X86_G,
					[BPF_JSGE >> 4] = X86_GE, [BPF_JLT >> 4] = X86_B,
					[BPF_JLE >> 4] = X86_BE,  [BPF_JSLT >> 4] = X86_L,
					[BPF_JSLE >> 4] = X86_LE };
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
		spend(j, i);
	if (always) {
		bool near = to > i;

		for (uint32_t k = i + 1; near && k < to; k++)
			near = !j->facts.insn[k].reached;
		if (!near)
			x86_jmp(b, target, wide);
		return;
	}
	if (j->loaded_for == i)
		mem_alu_imm(j, j->loaded_size, X86_CMP, &j->loaded, ins->imm);
	else if (BPF_SRC(ins->code) == BPF_X)
		x86_rr(b, size, op == BPF_JSET ? X86_OP_TEST : x86_alu_op(X86_CMP), s, d);
	else if (op == BPF_JSET) {
		x86_rr(b, size, 0xf7, 0, d);
		x86_u32(b, (uint32_t)ins->imm);
	} else if (!ins->imm)
		x86_rr(b, size, X86_OP_TEST, d, d);
	else
		x86_alu_imm(b, size, X86_CMP, d, ins->imm);
	x86_jcc(b, (enum x86_cc)ccs[op >> 4], target, wide);
}

/* --- functions --- */

/* Callee-saved registers the function writes. */
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

/* Only the result, which nobody wants from a thunk. */
static bool is_result(const struct jit *j, uint32_t i)
{
	const struct bpf_insn *ins = &j->insns[i];

	return j->in_thunk && ins->dst_reg == BPF_REG_0 &&
	       (BPF_CLASS(ins->code) == BPF_ALU || BPF_CLASS(ins->code) == BPF_ALU64) &&
	       ins[1].code == (BPF_JMP | BPF_EXIT);
}

/* A load just for the comparison with a constant behind it, which then reads memory: index of that,
 * or 0. */
static uint32_t compared(const struct jit *j, uint32_t i, const struct jit_fn *fn)
{
	const struct bpf_insn *ins = &j->insns[i], *jump;
	const struct jit_fact *f = &j->facts.insn[i];
	uint32_t k = i + 1, size = insn_size(ins);

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

/* A load just for an operation behind it, likewise. */
static uint32_t operated(const struct jit *j, uint32_t i, const struct jit_fn *fn)
{
	const struct bpf_insn *ins = &j->insns[i], *alu;
	const struct jit_fact *f = &j->facts.insn[i];
	uint32_t k = i + 1;

	if (BPF_CLASS(ins->code) != BPF_LDX || BPF_MODE(ins->code) != BPF_MEM ||
	    insn_size(ins) != 8 || !f->proven)
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
		j->loaded = memory(j, i, jit_reg[ins->src_reg], ins->off, insn_size(ins), true);
		j->loaded_size = insn_size(ins);
		return;
	}
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		if (!is_result(j, i))
			alu(j, i, ins);
		return;
	case BPF_LDX: load(j, i, ins); return;
	case BPF_ST: store(j, i, ins); return;
	case BPF_STX:
		if (BPF_MODE(ins->code) == BPF_ATOMIC)
			atomic(j, i, ins);
		else
			store(j, i, ins);
		return;
	case BPF_LD: load_imm64(j, i, ins); return;
	}
	if (ins->code == (BPF_JMP | BPF_CALL))
		call(j, i, ins, fn);
	else
		jump(j, i, ins);
}

static const uint8_t callee_saved[] = { X86_RBX, X86_R13, X86_R14, X86_R15 };

/* The end of a function; in a thunk, a jump to the end of the body, if there is more of it. */
static void leave(struct jit *j, uint32_t i, const struct jit_fn *fn, uint32_t save, bool pad)
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
		/* behind a call that never returns */
		if (!f->reached && i > fn->start && f[-1].reached &&
		    j->insns[i - 1].code == (BPF_JMP | BPF_CALL)) {
			x86_rr(b, 4, x86_alu_op(X86_CMP), X86_RAX, X86_RAX);
			cold(j, X86_E, i - 1);
		}
		if (f->reached && !f->dead) {
			if (ins->code == (BPF_JMP | BPF_EXIT))
				leave(j, i, fn, save, pad);
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

void jit_own(struct jit *j, unsigned reg)
{
	struct x86 *b = &j->b;

	x86_mov_rr(b, reg, THREAD);
	if (j->env->stack_shift)
		x86_shift_imm(b, 8, X86_SHR, reg, j->env->stack_shift);
	x86_rip(b, 8, 0x03, reg, const_at(j, CONST_STACKS));
}

/* to = T0 less a word of the struct wire_own. */
static void from_own(struct jit *j, unsigned to, int32_t off)
{
	struct x86 *b = &j->b;

	jit_own(j, to);
	x86_rm(b, 8, X86_OP_LOAD, to, to, off);
	x86_rr(b, 8, X86_OP_GROUP3, X86_NEG, to);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T0, to);
}

/* in: T0 address, T1 bytes. Carry: not the program's. T2 is lost. */
static void range_piece(struct jit *j)
{
	struct x86 *b = &j->b;
	uint32_t none, out, over, good, bad1, bad2;

	j->range = b->n;
	x86_rr(b, 8, X86_OP_TEST, T1, T1);
	none = x86_jcc_over(b, X86_E); /* carry is clear */
	x86_mov_rr(b, T2, T0);
	x86_rip(b, 8, 0x2b, T2, const_at(j, CONST_AREA));
	x86_rip(b, 8, 0x3b, T2, const_at(j, CONST_SIZE));
	out = x86_jcc_over(b, X86_A);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T1, T2);
	over = x86_jcc_over(b, X86_B);
	x86_rip(b, 8, 0x3b, T2, const_at(j, CONST_SIZE));
	good = x86_jcc_over(b, X86_BE);
	x86_land(b, out);
	x86_land(b, over);
	from_own(j, T2, OFF_FRAME);
	x86_alu_imm(b, 8, X86_CMP, T2, (int32_t)j->data);
	bad1 = x86_jcc_over(b, X86_A);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T1, T2);
	bad2 = x86_jcc_over(b, X86_B);
	x86_alu_imm(b, 8, X86_CMP, T2, (int32_t)j->data);
	x86_land(b, good);
	uint32_t fine = x86_jcc_over(b, X86_BE);
	x86_land(b, bad1);
	x86_land(b, bad2);
	x86_byte(b, 0xf9); /* stc */
	x86_ret(b);
	x86_land(b, fine);
	x86_land(b, none);
	x86_byte(b, 0xf8); /* clc */
	x86_ret(b);
}

/* Ends the firing; edi: the instruction. */
static void stop_piece(struct jit *j)
{
	struct x86 *b = &j->b;

	j->stop = b->n;
	jit_own(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSP, T0, offsetof(struct wire_own, frame));
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, 16);
	x86_mov_rr(b, X86_R9, THREAD);
	x86_call(b, jit_agent(j, WIRE_AGENT_violation));
	jit_own(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSP, T0, offsetof(struct wire_own, frame));
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, 8); /* the first function's return address */
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	x86_ret(b);
	j->clobbered |= HELPER_CLOBBERS;
}

static void cold_path(struct jit *j, const struct jit_cold *c)
{
	struct x86 *b = &j->b;
	uint32_t rel = b->n - c->jump;

	for (int i = 0; i < 4; i++)
		b->p[c->jump - 4 + (uint32_t)i] = (uint8_t)(rel >> 8 * i);
	if (c->bucket || c->reserve) {
		if (c->bucket)
			negative_bucket(j, c->insn);
		else
			ask_for_room(j, c->insn);
		x86_jmp(b, c->back, true);
		return;
	}
	if (!c->fail && j->data >= c->size) {
		from_own(j, T1, OFF_FRAME);
		x86_alu_imm(b, 8, X86_CMP, T1, (int32_t)(j->data - c->size));
		x86_jcc(b, X86_BE, c->back, true);
	}
	if (!c->fail && c->load && j->facts.ctx_used) {
		from_own(j, T1, OFF_REGS);
		x86_alu_imm(b, 8, X86_CMP, T1, JIT_CTX - c->size);
		x86_jcc(b, X86_BE, c->back, true);
	}
	x86_mov_imm(b, X86_RDI, c->insn);
	x86_jmp(b, j->stop, true);
}

void jit_cold_paths(struct jit *j, uint32_t first)
{
	for (uint32_t i = first; i < j->ncold; i++)
		cold_path(j, &j->cold[i]);
	j->ncold = first;
}

void jit_pieces(struct jit *j)
{
	uint64_t consts[CONSTS] = { j->env->area, j->env->area_size, j->env->shared,
				    j->env->private + offsetof(struct wire_private, threads),
				    j->env->stacks };
	uint64_t shared_size = j->env->area + j->env->area_size - j->env->shared;
	bool stops = j->facts.checks;

	for (uint32_t i = 0; i < j->ncold; i++)
		stops |= !j->cold[i].bucket && !j->cold[i].reserve;
	if (stops) {
		x86_align(&j->b, 16, 0xcc);
		stop_piece(j);
		range_piece(j);
	}
	jit_cold_paths(j, 0);
	x86_align(&j->b, 8, 0xcc);
	for (int i = 0; i < 4; i++) {
		consts[CONST_LIMIT + i] = j->env->area_size - (1u << i);
		consts[CONST_STORE_LIMIT + i] = shared_size - (1u << i);
	}
	j->consts = j->b.n;
	for (int i = 0; i < CONSTS; i++)
		x86_u64(&j->b, consts[i]);
}
