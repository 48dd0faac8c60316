/* Random eBPF programs that are valid and whose results do not depend on where memory lies: every
 * register and stack word has a value before it is read, addresses never become data. Choices come
 * from bytes (a fuzzer's), then from a generator seeded by them.
 *
 * Registers: r0-r6 data, r7 loop counter, r8 = 64 bytes of an array, r9 = 64 bytes of a per-thread
 * array.
 * Stack: -8 .. -64 data, -72 key, -80 r7 over calls.
 */
#ifndef DESCRY_TEST_JIT_RANDOM_H
#define DESCRY_TEST_JIT_RANDOM_H

#include "base/mem.h"
#include "insn.h"

enum { RANDOM_MAX = 4096, RANDOM_FUNCS = 4, RANDOM_ENTRIES = 5, RANDOM_VALUE = 64 };
enum { RANDOM_ARRAY, RANDOM_THREAD, RANDOM_LOOKUP, RANDOM_MAPS }; /* map indices */

struct random_program {
	const uint8_t *data;
	size_t size;
	uint64_t state;
	bool kernel; /* what the kernel's verifier takes, too */
	struct bpf_insn p[RANDOM_MAX];
	uint32_t n;
	uint32_t func[RANDOM_FUNCS], nfuncs;
	struct {
		uint32_t insn, func;
	} calls[256];
	uint32_t ncalls;
	uint32_t depth;
	bool in_func;
};

static uint32_t rp_rnd(struct random_program *r, uint32_t n)
{
	uint32_t v = 0;

	if (r->size >= 2) {
		v = (uint32_t)(r->data[0] | r->data[1] << 8);
		r->data += 2;
		r->size -= 2;
		r->state ^= v;
	}
	r->state = r->state * 6364136223846793005ull + 1442695040888963407ull;
	return (v ^ (uint32_t)(r->state >> 33)) % n;
}

static int32_t rp_imm(struct random_program *r)
{
	static const int32_t edge[] = { 0, 1, -1, 2, 31, 32, 63, INT32_MAX, INT32_MIN, 255, 0x8000 };

	return rp_rnd(r, 2) ? edge[rp_rnd(r, ARRAY_SIZE(edge))]
			    : (int32_t)(rp_rnd(r, 65536) << 16 | rp_rnd(r, 65536));
}

static void rp_emit(struct random_program *r, struct bpf_insn i)
{
	if (r->n < RANDOM_MAX)
		r->p[r->n++] = i;
}

static void rp_const(struct random_program *r, uint8_t reg)
{
	uint64_t v = (uint64_t)(uint32_t)rp_imm(r) << 32 | (uint32_t)rp_imm(r);
	struct bpf_insn two[] = { LD64(reg, 0, v) };

	rp_emit(r, two[0]);
	rp_emit(r, two[1]);
}

static void rp_maps(struct random_program *r)
{
	struct bpf_insn a[] = { LD64(8, EBPF_PSEUDO_MAP_VALUE, RANDOM_ARRAY) };
	struct bpf_insn t[] = { LD64(9, EBPF_PSEUDO_MAP_VALUE, RANDOM_THREAD) };

	rp_emit(r, a[0]);
	rp_emit(r, a[1]);
	rp_emit(r, t[0]);
	rp_emit(r, t[1]);
}

static void rp_alu(struct random_program *r)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,
				       BPF_AND, BPF_LSH, BPF_RSH, BPF_NEG, BPF_MOD,
				       BPF_XOR, BPF_MOV, BPF_ARSH };
	uint8_t d = (uint8_t)rp_rnd(r, 7), s = (uint8_t)rp_rnd(r, 7);
	uint8_t op = ops[rp_rnd(r, ARRAY_SIZE(ops))], width = rp_rnd(r, 2) ? BPF_ALU64 : BPF_ALU;
	bool division = op == BPF_DIV || op == BPF_MOD;
	int16_t off = division && rp_rnd(r, 2);
	int32_t imm = rp_imm(r);

	switch (rp_rnd(r, 8)) {
	case 0:
		rp_emit(r, INSN(BPF_ALU | BPF_END | (rp_rnd(r, 2) ? BPF_TO_BE : BPF_TO_LE), d, 0, 0,
				16 << rp_rnd(r, 3)));
		return;
	case 1: rp_emit(r, INSN(BPF_ALU64 | BPF_END, d, 0, 0, 16 << rp_rnd(r, 3))); return;
	case 2:
		off = (int16_t)(8 << rp_rnd(r, width == BPF_ALU ? 2 : 3));
		rp_emit(r, INSN(width | BPF_MOV | BPF_X, d, s, off, 0));
		return;
	}
	if (op == BPF_NEG)
		rp_emit(r, INSN(width | op, d, 0, 0, 0));
	else if (rp_rnd(r, 2))
		rp_emit(r, INSN(width | op | BPF_X, d, s, off, 0));
	else if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
		rp_emit(r,
			INSN(width | op, d, 0, 0, (int32_t)rp_rnd(r, width == BPF_ALU ? 32 : 64)));
	else
		rp_emit(r, INSN(width | op, d, 0, off, division && !imm ? 3 : imm));
}

/* Any load, store or atomic at base + off, 8 aligned bytes there; data in registers s and d. */
static void rp_access(struct random_program *r, uint8_t base, int16_t off, uint8_t d, uint8_t s)
{
	static const int32_t atomics[] = { BPF_ADD,
					   BPF_OR,
					   BPF_AND,
					   BPF_XOR,
					   BPF_ADD | BPF_FETCH,
					   BPF_OR | BPF_FETCH,
					   BPF_AND | BPF_FETCH,
					   BPF_XOR | BPF_FETCH,
					   BPF_XCHG,
					   BPF_CMPXCHG };
	static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	uint32_t sz = rp_rnd(r, 4);
	/* kernels want aligned accesses on the stack */
	int16_t inner = (int16_t)(rp_rnd(r, 8) & ~((1u << sz) - 1));

	switch (rp_rnd(r, 5)) {
	case 0: rp_emit(r, INSN(BPF_LDX | BPF_MEM | sizes[sz], d, base, off + inner, 0)); return;
	case 1:
		if (sz == 3)
			sz = 2, inner = 4;
		rp_emit(r, INSN(BPF_LDX | EBPF_MEMSX | sizes[sz], d, base, off + inner, 0));
		return;
	case 2: rp_emit(r, INSN(BPF_STX | BPF_MEM | sizes[sz], base, s, off + inner, 0)); return;
	case 3:
		rp_emit(r, INSN(BPF_ST | BPF_MEM | sizes[sz], base, 0, off + inner, rp_imm(r)));
		return;
	default:
		rp_emit(r, INSN(BPF_STX | BPF_ATOMIC | (rp_rnd(r, 2) ? BPF_W : BPF_DW), base, s,
				off, atomics[rp_rnd(r, ARRAY_SIZE(atomics))]));
	}
}

static void rp_memory(struct random_program *r)
{
	uint8_t d = (uint8_t)rp_rnd(r, 7), s = (uint8_t)rp_rnd(r, 7), t = (uint8_t)rp_rnd(r, 6);
	int16_t off = (int16_t)(8 * rp_rnd(r, 8));
	int32_t k = rp_imm(r);
	uint32_t how = rp_rnd(r, r->kernel ? 5 : 8);

	switch (how) {
	case 0:
	case 1: rp_access(r, 10, (int16_t)(-64 + off), d, s); return;
	case 2: rp_access(r, 8, off, d, s); return;
	case 3: rp_access(r, 9, off, d, s); return;
	}
	/* Through a computed address in t, which then becomes data again. r0 is cmpxchg's. */
	if (t == 0)
		t = 1;
	if (d == t)
		d = 0;
	if (s == t)
		s = 0;
	switch (how) {
	case 4: /* known to lie in the value */
		rp_emit(r, ALU64_IMM(AND, t, 56));
		rp_emit(r, ALU64_REG(ADD, t, rp_rnd(r, 2) ? 8 : 9));
		rp_access(r, t, 0, d, s);
		break;
	case 5: /* not known */
		rp_emit(r, ALU64_REG(MOV, t, rp_rnd(r, 2) ? 8 : 9));
		rp_emit(r, ALU64_IMM(XOR, t, k));
		rp_emit(r, ALU64_IMM(XOR, t, k));
		rp_access(r, t, off, d, s);
		break;
	case 6: /* the stack, not known */
		rp_emit(r, ALU64_REG(MOV, t, 10));
		rp_emit(r, ALU64_IMM(XOR, t, k));
		rp_emit(r, ALU64_IMM(XOR, t, k));
		rp_access(r, t, (int16_t)(-64 + off), d, s);
		break;
	default: /* the stack, a range */
		rp_emit(r, ALU64_IMM(AND, t, 56));
		rp_emit(r, ALU64_REG(ADD, t, 10));
		rp_access(r, t, -64, d, s);
	}
	rp_const(r, t);
}

static void rp_after_call(struct random_program *r)
{
	for (uint8_t reg = 1; reg <= 5; reg++)
		rp_const(r, reg);
}

static void rp_call(struct random_program *r)
{
	uint32_t f = rp_rnd(r, RANDOM_FUNCS);
	struct bpf_insn fn[] = { LD64(2, EBPF_PSEUDO_FUNC, 0) };
	struct bpf_insn map[] = { LD64(1, BPF_PSEUDO_MAP_FD, RANDOM_LOOKUP) };
	uint32_t skip;

	if (r->ncalls + 1 >= ARRAY_SIZE(r->calls))
		return;
	switch (rp_rnd(r, 3)) {
	case 0: /* a map's value, if it has one */
		rp_emit(r, ALU64_IMM(AND, 1, 7));
		rp_emit(r, STX(W, 10, 1, -72));
		if (rp_rnd(r, 3) == 0)
			rp_emit(r, ST(W, 10, -72, (int32_t)rp_rnd(r, 7)));
		rp_emit(r, map[0]);
		rp_emit(r, map[1]);
		rp_emit(r, ALU64_REG(MOV, 2, 10));
		rp_emit(r, ALU64_IMM(ADD, 2, -72));
		rp_emit(r, CALL(BPF_FUNC_map_lookup_elem));
		rp_const(r, 1);
		rp_const(r, 2);
		skip = r->n;
		rp_emit(r, JMP_IMM(JEQ, 0, 0, 0));
		rp_emit(r, ALU64_REG(MOV, 3, 0));
		rp_access(r, 3, (int16_t)(8 * rp_rnd(r, 8)), 1, 2);
		r->p[skip].off = (int16_t)(r->n - skip - 1);
		rp_const(r, 0);
		break;
	case 1: /* a function: r1 the stack's data */
		if (r->in_func)
			return;
		rp_emit(r, ALU64_REG(MOV, 1, 10));
		rp_emit(r, ALU64_IMM(ADD, 1, -64));
		r->calls[r->ncalls].insn = r->n;
		r->calls[r->ncalls++].func = f & ~1u;
		rp_emit(r, CALL_REL(0));
		break;
	default:
		if (r->in_func)
			return;
		rp_emit(r, ALU64_IMM(AND, 1, 7));
		r->calls[r->ncalls].insn = r->n;
		r->calls[r->ncalls++].func = f | 1;
		rp_emit(r, fn[0]);
		rp_emit(r, fn[1]);
		rp_emit(r, ALU64_REG(MOV, 3, 10));
		rp_emit(r, ALU64_IMM(ADD, 3, -64));
		rp_emit(r, ALU64_IMM(MOV, 4, 0));
		rp_emit(r, CALL(BPF_FUNC_loop));
	}
	rp_after_call(r);
}

static void rp_body(struct random_program *r, uint32_t steps);

static void rp_branch(struct random_program *r)
{
	static const uint8_t jumps[] = { BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
					 BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };
	uint8_t op = jumps[rp_rnd(r, ARRAY_SIZE(jumps))] | (rp_rnd(r, 2) ? BPF_JMP : BPF_JMP32);
	uint8_t d = (uint8_t)rp_rnd(r, 7), s = (uint8_t)rp_rnd(r, 7);
	uint32_t at = r->n;

	rp_emit(r, rp_rnd(r, 2) ? INSN(op | BPF_X, d, s, 0, 0) : INSN(op, d, 0, 0, rp_imm(r)));
	rp_body(r, 1 + rp_rnd(r, 3));
	if (rp_rnd(r, 2)) {
		uint32_t other = r->n;

		rp_emit(r, rp_rnd(r, 2) ? INSN(BPF_JMP | BPF_JA, 0, 0, 0, 0)
					: INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, 0));
		r->p[at].off = (int16_t)(r->n - at - 1);
		rp_body(r, 1 + rp_rnd(r, 3));
		if (r->p[other].code == (BPF_JMP | BPF_JA))
			r->p[other].off = (int16_t)(r->n - other - 1);
		else
			r->p[other].imm = (int32_t)(r->n - other - 1);
	} else {
		r->p[at].off = (int16_t)(r->n - at - 1);
	}
}

static void rp_loop(struct random_program *r)
{
	uint32_t top;

	if (r->depth || r->kernel)
		return;
	r->depth++;
	rp_emit(r, ALU64_IMM(MOV, 7, (int32_t)(1 + rp_rnd(r, 4))));
	top = r->n;
	rp_body(r, 1 + rp_rnd(r, 3));
	rp_emit(r, ALU64_IMM(SUB, 7, 1));
	rp_emit(r, JMP_IMM(JNE, 7, 0, 0));
	r->p[r->n - 1].off = (int16_t)((int32_t)top - (int32_t)r->n);
	r->depth--;
}

static void rp_body(struct random_program *r, uint32_t steps)
{
	for (uint32_t i = 0; i < steps && r->n < RANDOM_MAX / 2; i++) {
		switch (rp_rnd(r, 12)) {
		case 0: rp_call(r); break;
		case 1: rp_branch(r); break;
		case 2: rp_loop(r); break;
		case 3:
		case 4:
		case 5:
		case 6: rp_memory(r); break;
		default: rp_alu(r);
		}
	}
}

/* Everything into r0; both halves count in the lower one, which is all that the kernel shows. */
static void rp_fold(struct random_program *r)
{
	for (uint8_t reg = 1; reg < 7; reg++) {
		rp_emit(r, ALU64_IMM(MUL, 0, 31));
		rp_emit(r, ALU64_REG(ADD, 0, reg));
	}
	for (int16_t i = 1; i <= 8; i++) {
		rp_emit(r, LDX(DW, 1, 10, (int16_t)(-8 * i)));
		rp_emit(r, ALU64_IMM(MUL, 0, 31));
		rp_emit(r, ALU64_REG(ADD, 0, 1));
	}
	rp_emit(r, ALU64_REG(MOV, 1, 0));
	rp_emit(r, ALU64_IMM(RSH, 1, 32));
	rp_emit(r, ALU64_REG(XOR, 0, 1));
}

static void rp_begin(struct random_program *r, uint8_t first)
{
	for (uint8_t reg = 0; reg < 8; reg++)
		if (reg == 0 || reg >= first)
			rp_const(r, reg);
	for (int16_t i = 1; i <= 9; i++)
		rp_emit(r, STX(DW, 10, (uint8_t)(i % 7 < first && i % 7 ? 0 : i % 7),
			       (int16_t)(-8 * i)));
	rp_maps(r);
}

static void rp_make(struct random_program *r, const uint8_t *data, size_t size, uint64_t seed,
		    bool kernel)
{
	memset(r, 0, sizeof(*r));
	r->data = data;
	r->size = size;
	r->state = seed;
	r->kernel = kernel;
	rp_begin(r, 1);
	rp_body(r, 10 + rp_rnd(r, 40));
	rp_fold(r);
	rp_emit(r, EXIT());
	r->in_func = true;
	for (uint32_t f = 0; f < RANDOM_FUNCS; f++) {
		bool used = false;

		for (uint32_t i = 0; i < r->ncalls; i++)
			used |= r->calls[i].func == f;
		if (!used)
			continue;
		r->func[f] = r->n;
		rp_begin(r, f & 1 ? 3 : 2);
		/* the caller's data: by r1, in a callback by r2 */
		rp_emit(r, ALU64_REG(MOV, 6, f & 1 ? 2 : 1));
		if (f & 1)
			rp_emit(r, ALU64_REG(MOV, 5, 1));
		rp_access(r, 6, (int16_t)(8 * rp_rnd(r, 8)), 3, 4);
		rp_access(r, 6, (int16_t)(8 * rp_rnd(r, 8)), 4, 5);
		for (uint8_t reg = 1; reg <= (f & 1 ? 2 : 1); reg++)
			rp_const(r, reg);
		rp_const(r, 6);
		rp_body(r, 3 + rp_rnd(r, 8));
		rp_fold(r);
		if (f & 1) /* callbacks give 0 or 1 */
			rp_emit(r, ALU64_IMM(AND, 0, (int32_t)rp_rnd(r, 2)));
		rp_emit(r, EXIT());
	}
	for (uint32_t i = 0; i < r->ncalls; i++)
		r->p[r->calls[i].insn].imm =
			(int32_t)(r->func[r->calls[i].func] - r->calls[i].insn - 1);
}

#endif
