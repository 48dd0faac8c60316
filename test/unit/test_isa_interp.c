#include "unit.h"

#include "base/mem.h"
#include "insn.h"
#include "isa/interp.h"

enum { HELPER_SUM = 1, HELPER_LOOP = 2, HELPER_FAIL = 3, HELPER_NEW = 4, HELPER_DROP = 5 };

static uint64_t extra[2] = { 11, 22 };

static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	uint64_t args[5] = { 0 }, r0, n;

	switch (id) {
	case HELPER_SUM: return a[0] + a[1] + a[2] + a[3] + a[4];
	case HELPER_LOOP: /* loop(n, func, ctx) */
		for (n = 0; n < a[0]; n++) {
			args[0] = n;
			args[1] = a[2];
			if (!interp_call(in, a[1], args, &r0))
				return 0;
			if (r0)
				break;
		}
		return n;
	case HELPER_NEW:
		interp_mem_add(in->mem, extra, sizeof(extra), false);
		return (uintptr_t)extra;
	case HELPER_DROP: interp_mem_del(in->mem, extra); return 0;
	}
	interp_fail(in, "helper %u", id);
	return 0;
}

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret)
{
	*ret = (uint64_t)(uint32_t)insn->imm + 1000;
	return insn->src_reg == BPF_PSEUDO_MAP_FD;
}

static bool load_fault(struct interp *in, uint64_t addr, uint32_t size, uint64_t *ret)
{
	*ret = 0;
	return addr >= 0xffff000000000000;
}

static const struct interp_ops ops = { helper, resolve, load_fault };

struct ctx {
	uint64_t a, b;
	uint8_t bytes[16];
};

/* Runs p with r1 = a struct ctx. */
static struct err *run(const struct bpf_insn *p, uint32_t n, struct ctx *ctx, uint64_t *ret)
{
	struct interp_mem mem = { 0 };
	struct interp in;
	struct err *e = ebpf_check(p, n, 0);

	if (e)
		return e;
	interp_mem_add(&mem, ctx, sizeof(*ctx), true);
	interp_init(&in, &ops, NULL, p, n, &mem);
	in.budget = 10000;
	e = interp_run(&in, 0, (uintptr_t)ctx, ret);
	interp_fini(&in);
	interp_mem_fini(&mem);
	return e;
}

static uint64_t value_(const struct bpf_insn *p, uint32_t n, const char *file, int line)
{
	struct ctx ctx = { 0xfffffffffffffff6,
			   3,
			   { 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87 } };
	uint64_t v = 0;
	struct err *e = run(p, n, &ctx, &v);

	if (e)
		_fail(file, line);
	err_free(e);
	return v;
}

/* r0 at the end of the instructions given; r1 = ctx, r2 = ctx->a (-10), r3 = ctx->b (3). */
#define VALUE(...) \
	({ \
		const struct bpf_insn p_[] = { LDX(DW, 2, 1, 0), LDX(DW, 3, 1, 8), __VA_ARGS__, \
					       EXIT() }; \
		value_(p_, ARRAY_SIZE(p_), __FILE__, __LINE__); \
	})
#define BIN64(op) VALUE(ALU64_REG(MOV, 0, 2), ALU64_REG(op, 0, 3))
#define BIN32(op) VALUE(ALU64_REG(MOV, 0, 2), ALU32_REG(op, 0, 3))
#define IS(got, want) \
	do { \
		uint64_t got_ = (got); \
		if (got_ != (uint64_t)(want)) \
			fail_msg("line %d: got 0x%llx", __LINE__, (unsigned long long)got_); \
	} while (0)

static void test_alu64(void **state)
{
	IS(BIN64(ADD), -7);
	IS(BIN64(SUB), -13);
	IS(BIN64(MUL), -30);
	IS(BIN64(DIV), (uint64_t)-10 / 3);
	IS(BIN64(MOD), (uint64_t)-10 % 3);
	IS(BIN64(OR), -10 | 3);
	IS(BIN64(AND), -10 & 3);
	IS(BIN64(XOR), -10 ^ 3);
	IS(BIN64(LSH), -80);
	IS(BIN64(RSH), (uint64_t)-10 >> 3);
	IS(BIN64(ARSH), -2);
	IS(BIN64(MOV), 3);
	IS(VALUE(ALU64_REG(MOV, 0, 2), ALU64_IMM(NEG, 0, 0)), 10);
	IS(VALUE(ALU64_IMM(MOV, 0, -1)), -1);
	IS(VALUE(ALU64_REG(MOV, 0, 2), ALU64_IMM(ADD, 0, -5)), -15);
	IS(VALUE(ALU64_REG(MOV, 0, 2), INSN(BPF_ALU64 | BPF_DIV | BPF_X, 0, 3, 1, 0)), -3);
	IS(VALUE(ALU64_REG(MOV, 0, 2), INSN(BPF_ALU64 | BPF_MOD | BPF_X, 0, 3, 1, 0)), -1);
	IS(VALUE(LD64(0, 0, 0x80), INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 0, 8, 0)), -128);
	IS(VALUE(LD64(0, 0, 0x180000000), INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 0, 32, 0)),
	   (int64_t)INT32_MIN);
}

static void test_alu32(void **state)
{
	IS(BIN32(ADD), (uint32_t)-7);
	IS(BIN32(SUB), (uint32_t)-13);
	IS(BIN32(MUL), (uint32_t)-30);
	IS(BIN32(DIV), (uint32_t)-10 / 3);
	IS(BIN32(MOD), (uint32_t)-10 % 3);
	IS(BIN32(LSH), (uint32_t)-80);
	IS(BIN32(RSH), (uint32_t)-10 >> 3);
	IS(BIN32(ARSH), (uint32_t)-2);
	IS(VALUE(ALU32_REG(MOV, 0, 2)), (uint32_t)-10);
	IS(VALUE(ALU32_IMM(MOV, 0, -1)), UINT32_MAX);
	IS(VALUE(ALU64_REG(MOV, 0, 2), ALU32_IMM(NEG, 0, 0)), 10);
	IS(VALUE(ALU64_IMM(MOV, 0, 0x80), INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 0, 8, 0)),
	   (uint32_t)-128);
}

static void test_division_is_total(void **state)
{
	IS(VALUE(ALU64_IMM(MOV, 4, 0), ALU64_REG(MOV, 0, 3), ALU64_REG(DIV, 0, 4)), 0);
	IS(VALUE(ALU64_IMM(MOV, 4, 0), ALU64_REG(MOV, 0, 3), ALU64_REG(MOD, 0, 4)), 3);
	/* a 32-bit divisor is zero when its lower half is */
	IS(VALUE(LD64(4, 0, 0x100000000), ALU64_REG(MOV, 0, 3), ALU32_REG(DIV, 0, 4)), 0);
	IS(VALUE(LD64(0, 0, 0x8000000000000000), ALU64_IMM(MOV, 4, -1),
		 INSN(BPF_ALU64 | BPF_DIV | BPF_X, 0, 4, 1, 0)),
	   0x8000000000000000);
	IS(VALUE(LD64(0, 0, 0x8000000000000000), ALU64_IMM(MOV, 4, -1),
		 INSN(BPF_ALU64 | BPF_MOD | BPF_X, 0, 4, 1, 0)),
	   0);
	IS(VALUE(LD64(0, 0, 0x80000000), ALU64_IMM(MOV, 4, -1),
		 INSN(BPF_ALU | BPF_DIV | BPF_X, 0, 4, 1, 0)),
	   0x80000000);
	/* shifts take the count modulo the width */
	IS(VALUE(ALU64_IMM(MOV, 4, 65), ALU64_REG(MOV, 0, 3), ALU64_REG(LSH, 0, 4)), 6);
	IS(VALUE(ALU64_IMM(MOV, 4, 33), ALU64_REG(MOV, 0, 3), ALU32_REG(LSH, 0, 4)), 6);
}

static void test_byte_order(void **state)
{
	const uint64_t v = 0x1122334455667788;

	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 16)), 0x8877);
	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 32)), 0x88776655);
	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 64)),
	   0x8877665544332211);
	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU | BPF_END | BPF_TO_LE, 0, 0, 0, 16)), 0x7788);
	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU | BPF_END | BPF_TO_LE, 0, 0, 0, 64)), v);
	IS(VALUE(LD64(0, 0, v), INSN(BPF_ALU64 | BPF_END, 0, 0, 0, 32)), 0x88776655);
}

#define TAKEN(jump) VALUE(ALU64_IMM(MOV, 0, 1), jump, ALU64_IMM(MOV, 0, 0))

static void test_jumps(void **state)
{
	IS(TAKEN(JMP_IMM(JA, 0, 0, 1)), 1);
	IS(TAKEN(INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, 1)), 1);
	IS(TAKEN(JMP_IMM(JEQ, 2, -10, 1)), 1);
	IS(TAKEN(JMP_IMM(JEQ, 2, 10, 1)), 0);
	IS(TAKEN(JMP_REG(JNE, 2, 3, 1)), 1);
	IS(TAKEN(JMP_REG(JGT, 2, 3, 1)), 1);
	IS(TAKEN(JMP_REG(JGE, 3, 3, 1)), 1);
	IS(TAKEN(JMP_REG(JLT, 2, 3, 1)), 0);
	IS(TAKEN(JMP_REG(JLE, 3, 2, 1)), 1);
	IS(TAKEN(JMP_REG(JSGT, 2, 3, 1)), 0);
	IS(TAKEN(JMP_REG(JSGE, 3, 2, 1)), 1);
	IS(TAKEN(JMP_REG(JSLT, 2, 3, 1)), 1);
	IS(TAKEN(JMP_REG(JSLE, 2, 2, 1)), 1);
	IS(TAKEN(JMP_IMM(JSET, 3, 4, 1)), 0);
	IS(TAKEN(JMP_IMM(JSET, 3, 2, 1)), 1);
	/* an immediate is sign-extended for 64-bit compares, and truncated for 32-bit compares */
	IS(TAKEN(JMP_IMM(JGE, 2, -1, 1)), 0);
	IS(TAKEN(JMP32_IMM(JEQ, 2, -10, 1)), 1);
	IS(VALUE(LD64(4, 0, 0xffffffff00000003), ALU64_IMM(MOV, 0, 1), JMP32_REG(JEQ, 4, 3, 1),
		 ALU64_IMM(MOV, 0, 0)),
	   1);
	IS(TAKEN(JMP32_REG(JSLT, 2, 3, 1)), 1);
	/* backwards: 1 + 2 + ... + 10 */
	IS(VALUE(ALU64_IMM(MOV, 0, 0), ALU64_IMM(MOV, 4, 10), ALU64_REG(ADD, 0, 4),
		 ALU64_IMM(SUB, 4, 1), JMP_IMM(JNE, 4, 0, -3)),
	   55);
}

static void test_memory(void **state)
{
	IS(VALUE(LDX(B, 0, 1, 16)), 0x80);
	IS(VALUE(LDX(H, 0, 1, 17)), 0x8281);
	IS(VALUE(LDX(W, 0, 1, 16)), 0x83828180);
	IS(VALUE(LDX(DW, 0, 1, 16)), 0x8786858483828180);
	IS(VALUE(LDSX(B, 0, 1, 16)), (int8_t)0x80);
	IS(VALUE(LDSX(H, 0, 1, 16)), (int16_t)0x8180);
	IS(VALUE(LDSX(W, 0, 1, 16)), (int32_t)0x83828180);
	IS(VALUE(STX(B, 1, 2, 17), LDX(W, 0, 1, 16)), 0x8382f680);
	IS(VALUE(STX(DW, 10, 2, -512), LDX(DW, 0, 10, -512)), -10);
	IS(VALUE(ST(DW, 10, -8, -1), LDX(DW, 0, 10, -8)), -1);
	IS(VALUE(ST(DW, 10, -8, -1), ST(H, 10, -8, 5), LDX(DW, 0, 10, -8)), 0xffffffffffff0005);
	/* behind the end of every region: the load hook gives 0 */
	IS(VALUE(LD64(4, 0, 0xffff888000000000), LDX(DW, 0, 4, 8)), 0);
}

#define SLOT ST(DW, 10, -8, 12)

static void test_atomics(void **state)
{
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_ADD), LDX(DW, 0, 10, -8)), 15);
	IS(VALUE(SLOT, ATOMIC(W, 10, 2, -8, BPF_ADD), LDX(DW, 0, 10, -8)), 2);
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_OR), LDX(DW, 0, 10, -8)), 15);
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_AND), LDX(DW, 0, 10, -8)), 0);
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_XOR), LDX(DW, 0, 10, -8)), 15);
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_ADD | BPF_FETCH), ALU64_REG(MOV, 0, 3)), 12);
	IS(VALUE(SLOT, ATOMIC(DW, 10, 3, -8, BPF_XCHG), LDX(DW, 0, 10, -8), ALU64_REG(MUL, 0, 3)),
	   36);
	IS(VALUE(SLOT, ALU64_IMM(MOV, 0, 12), ATOMIC(DW, 10, 3, -8, BPF_CMPXCHG),
		 LDX(DW, 4, 10, -8), ALU64_REG(MUL, 0, 4)),
	   36);
	IS(VALUE(SLOT, ALU64_IMM(MOV, 0, 13), ATOMIC(DW, 10, 3, -8, BPF_CMPXCHG),
		 LDX(DW, 4, 10, -8), ALU64_REG(MUL, 0, 4)),
	   144);
	IS(VALUE(SLOT, LD64(0, 0, 0x50000000c), ATOMIC(W, 10, 3, -8, BPF_CMPXCHG),
		 LDX(DW, 0, 10, -8)),
	   3);
}

static void test_calls(void **state)
{
	/* helper: registers 1-5 in, 0 out, 6-9 kept */
	IS(VALUE(ALU64_IMM(MOV, 6, 100), ALU64_IMM(MOV, 1, 1), ALU64_IMM(MOV, 2, 2),
		 ALU64_IMM(MOV, 3, 3), ALU64_IMM(MOV, 4, 4), ALU64_IMM(MOV, 5, 5), CALL(HELPER_SUM),
		 ALU64_REG(ADD, 0, 6)),
	   115);
	/* a function gets a zeroed stack of its own and may use its caller's through a pointer */
	IS(VALUE(ST(DW, 10, -8, 7), ALU64_REG(MOV, 1, 10), CALL_REL(2), LDX(DW, 0, 10, -8), EXIT(),
		 LDX(DW, 2, 10, -8), ALU64_IMM(ADD, 2, 9), STX(DW, 10, 2, -8), STX(DW, 1, 2, -8)),
	   9);
	/* callback: sums 0..4 into the context's word */
	IS(VALUE(ST(DW, 1, 0, 0), ALU64_REG(MOV, 3, 1), ALU64_REG(MOV, 6, 1), ALU64_IMM(MOV, 1, 5),
		 LD64(2, EBPF_PSEUDO_FUNC, 5), CALL(HELPER_LOOP), LDX(DW, 7, 6, 0),
		 ALU64_REG(ADD, 0, 7), EXIT(), LDX(DW, 3, 2, 0), ALU64_REG(ADD, 3, 1),
		 STX(DW, 2, 3, 0), ALU64_IMM(MOV, 0, 0)),
	   15);
	IS(VALUE(LD64(0, BPF_PSEUDO_MAP_FD, 42)), 1042);
}

static void expect_error_(const struct bpf_insn *p, uint32_t n, const char *want)
{
	struct ctx ctx = { 0 };
	uint64_t v;
	struct err *e = run(p, n, &ctx, &v);

	assert_non_null(e);
	if (!strstr(e->text, want))
		fail_msg("'%s' in '%s'", want, e->text);
	err_free(e);
}

#define ERROR(want, ...) \
	do { \
		const struct bpf_insn p_[] = { __VA_ARGS__, EXIT() }; \
		expect_error_(p_, ARRAY_SIZE(p_), want); \
	} while (0)

static void test_errors(void **state)
{
	ERROR("instruction 1 (r0 = *(u64 *)(r2 +0)): read of 8 bytes at 0x0, outside",
	      ALU64_IMM(MOV, 2, 0), LDX(DW, 0, 2, 0));
	ERROR("write of 8 bytes", ST(DW, 1, 25, 0));
	ERROR("read of 1 bytes", LDX(B, 0, 1, 32));
	ERROR("read of 1 bytes", LDX(B, 0, 1, -1));
	ERROR("write of 8 bytes", ST(DW, 10, -520, 0));
	ERROR("write of 8 bytes", ST(DW, 10, -4, 0));
	ERROR("misaligned atomic", ALU64_IMM(MOV, 2, 0), ATOMIC(DW, 10, 2, -12, BPF_ADD));
	ERROR("budget", ALU64_IMM(MOV, 2, 0), JMP_IMM(JA, 0, 0, -1));
	ERROR("nested calls", CALL_REL(-1));
	ERROR("helper 3", CALL(HELPER_FAIL));
	ERROR("kernel functions", INSN(BPF_JMP | BPF_CALL, 0, EBPF_PSEUDO_KFUNC, 0, 1));
	ERROR("unresolved constant", LD64(1, EBPF_PSEUDO_MAP_VALUE, 1));
	ERROR("is not a function", ALU64_IMM(MOV, 1, 1), ALU64_IMM(MOV, 2, 8), CALL(HELPER_LOOP));
	/* an error inside a callback names the callback's instruction */
	ERROR("instruction 5 (", ALU64_IMM(MOV, 1, 5), LD64(2, EBPF_PSEUDO_FUNC, 3),
	      CALL(HELPER_LOOP), EXIT(), LDX(DW, 0, 1, 0));
	/* r1-r5 are not kept over calls */
	ERROR("instruction 2 (*(u64 *)(r1 +0) = r0): r1 has no value", ALU64_IMM(MOV, 2, 0),
	      CALL(HELPER_SUM), STX(DW, 1, 0, 0));
	ERROR("r0 has no value", ALU64_IMM(MOV, 2, 0));
	ERROR("r0 has no value", ALU64_REG(MOV, 2, 0));
	ERROR("r6 has no value", JMP_IMM(JEQ, 6, 0, 0));
	ERROR("r0 has no value", CALL_REL(1), EXIT(), ALU64_IMM(MOV, 2, 0));
	ERROR("r3 has no value", CALL_REL(1), EXIT(), ALU64_REG(ADD, 1, 3));
}

static void test_regions(void **state)
{
	struct interp_mem m = { 0 };
	struct interp in;
	uint8_t block[100] = { 0 };
	const struct bpf_insn p[] = {
		CALL(HELPER_NEW),     ALU64_REG(MOV, 6, 0),  LDX(DW, 7, 6, 8), CALL(HELPER_DROP),
		ALU64_REG(MOV, 0, 7), JMP_IMM(JEQ, 7, 0, 1), LDX(DW, 0, 6, 0), EXIT(),
	};
	struct err *e;
	uint64_t v;

	interp_mem_add(&m, block + 40, 10, true);
	interp_mem_add(&m, block, 20, true);
	interp_mem_add(&m, block + 80, 20, false);
	interp_mem_add(&m, block + 20, 20, true);
	interp_mem_add(&m, block + 70, 0, true);
	assert_int_equal(m.n, 4);
	interp_init(&in, &ops, NULL, p, ARRAY_SIZE(p), &m);
	for (int i = 0; i < 100; i++) {
		bool there = i < 50 || i >= 80;

		assert_int_equal(interp_bytes(&in, (uintptr_t)block + i, 1, false) != NULL, there);
		err_free(in.err);
		in.err = NULL;
	}
	assert_null(interp_bytes(&in, (uintptr_t)block + 85, 1, true));
	err_free(in.err);
	in.err = NULL;
	assert_null(interp_bytes(&in, (uintptr_t)block + 15, 10, false));
	err_free(in.err);
	in.err = NULL;
	assert_null(interp_bytes(&in, (uintptr_t)block + 45, UINT64_MAX, false));
	err_free(in.err);
	in.err = NULL;
	interp_mem_del(&m, block + 20);
	interp_mem_del(&m, block + 21);
	assert_int_equal(m.n, 3);

	/* a record may be read until it is submitted, and not after */
	e = interp_run(&in, 0, 0, &v);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "instruction 6 "));
	err_free(e);
	interp_fini(&in);
	interp_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alu64),
		cmocka_unit_test(test_alu32),
		cmocka_unit_test(test_division_is_total),
		cmocka_unit_test(test_byte_order),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
