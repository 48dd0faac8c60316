#include "unit.h"

#include "base/mem.h"
#include "insn.h"

static const char *operand(void *arg, uint32_t insn)
{
	return insn == *(uint32_t *)arg ? "map globals" : NULL;
}

static void test_print(void **state)
{
	const struct bpf_insn p[] = {
		ALU64_REG(MOV, 6, 1),
		LD64(1, BPF_PSEUDO_MAP_FD, 0),
		LDX(DW, 2, 10, -8),
		JMP_IMM(JEQ, 2, 0, 3),
		ALU32_IMM(ARSH, 2, 3),
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_IMM(JA, 0, 0, -4),
		CALL_REL(1),
		EXIT(),
		LD64(0, 0, 0x1122334455667788),
		ATOMIC(DW, 1, 2, 16, BPF_ADD | BPF_FETCH),
		ATOMIC(W, 1, 2, 0, BPF_ADD),
		INSN(BPF_ALU | BPF_END | BPF_TO_BE, 3, 0, 0, 16),
		LDSX(H, 3, 4, 2),
		INSN(BPF_ALU64 | BPF_DIV | BPF_X, 3, 4, 1, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 4, 8, 0),
		JMP32_REG(JSLT, 3, 4, -2),
		ST(B, 10, -1, 7),
		EXIT(),
	};
	uint32_t at = 1;
	struct ebpf_names names = { .operand = operand, .arg = &at, .index = true };
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ebpf_print(f, p, ARRAY_SIZE(p), &names);
	fclose(f);
	assert_string_equal(text, "    0       r6 = r1\n"
				  "    1       r1 = map globals\n"
				  "    3       r2 = *(u64 *)(r10 -8)\n"
				  "    4 L1:   if r2 == 0 goto L2\n"
				  "    5       w2 s>>= 3\n"
				  "    6       call map_lookup_elem\n"
				  "    7       goto L1\n"
				  "    8 L2:   call L3\n"
				  "    9       exit\n"
				  "   10 L3:   r0 = 0x1122334455667788 ll\n"
				  "   12       r2 = atomic_fetch_add((u64 *)(r1 +16), r2)\n"
				  "   13       lock *(u32 *)(r1 +0) += r2\n"
				  "   14       r3 = be16 r3\n"
				  "   15       r3 = *(s16 *)(r4 +2)\n"
				  "   16       r3 s/= r4\n"
				  "   17 L4:   r3 = (s8)r4\n"
				  "   18       if w3 s< w4 goto L4\n"
				  "   19       *(u8 *)(r10 -1) = 7\n"
				  "   20       exit\n");
	free(text);
	assert_null(ebpf_check(p, ARRAY_SIZE(p), 0));
}

static void test_check(void **state)
{
	static const struct {
		struct bpf_insn insns[4];
		uint32_t n;
		const char *why;
	} t[] = {
		{ { ALU64_IMM(MOV, 0, 0), EXIT() }, 2, NULL },
		{ { EXIT() }, 0, "no instructions" },
		{ { ALU64_IMM(MOV, 0, 0) }, 1, "instruction 0: runs off the end" },
		{ { JMP_IMM(JA, 0, 0, 1), EXIT() }, 2, "instruction 0: jumps outside the program" },
		{ { JMP_IMM(JA, 0, 0, -2), EXIT() }, 2, "instruction 0: jumps outside the program" },
		{ { JMP_IMM(JA, 0, 0, 1), LD64(0, 0, 0), EXIT() },
		  4,
		  "instruction 0: jumps into a 64-bit constant" },
		{ { CALL_REL(5), EXIT() }, 2, "instruction 0: calls outside the program" },
		{ { LD64(0, 0, 0) },
		  1,
		  "instruction 0 (18): 64-bit constant without its second half" },
		{ { LD64(0, 0, 0) }, 2, "instruction 1: runs off the end" },
		{ { ALU64_IMM(MOV, 11, 0), EXIT() }, 2, "instruction 0 (b7): no such register" },
		{ { ALU64_IMM(MOV, 10, 0), EXIT() },
		  2,
		  "instruction 0 (b7): writes the frame pointer" },
		{ { ALU64_IMM(DIV, 1, 0), EXIT() }, 2, "instruction 0 (37): division by zero" },
		{ { ALU32_IMM(LSH, 1, 32), EXIT() },
		  2,
		  "instruction 0 (64): shift by too many bits" },
		{ { ALU64_IMM(LSH, 1, 63), EXIT() }, 2, NULL },
		/* a long jump with offset 0 */
		{ { INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, 0), EXIT() }, 2, NULL },
		{ { INSN(0xff, 0, 0, 0, 0), EXIT() }, 2, "instruction 0 (ff): unknown opcode" },
		{ { INSN(0x00, 0, 0, 0, 0), EXIT() }, 2, "instruction 0 (00): unknown opcode" },
		{ { INSN(BPF_ALU | BPF_END, 1, 0, 0, 8), EXIT() },
		  2,
		  "instruction 0 (d4): bad width" },
		{ { ATOMIC(B, 1, 2, 0, BPF_ADD), EXIT() }, 2, "instruction 0 (d3): unknown opcode" },
		{ { ATOMIC(W, 1, 2, 0, 0x77), EXIT() },
		  2,
		  "instruction 0 (c3): unknown atomic operation" },
		{ { LDX(DW, 1, 2, 0), JMP_IMM(JA, 0, 0, -2) }, 2, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct err *e = ebpf_check(t[i].insns, t[i].n, 0);

		if (!t[i].why && e)
			fail_msg("%zu: %s", i, e->text);
		if (t[i].why) {
			assert_non_null(e);
			assert_string_equal(e->text, t[i].why);
		}
		err_free(e);
	}
}

/* Division has a result for all operands; 32-bit operations leave the upper half zero. */
static void test_alu(void **state)
{
	const uint64_t low = 0x8000000000000000;
	const struct {
		struct bpf_insn ins;
		uint64_t a, b, want;
	} t[] = {
		{ ALU64_REG(DIV, 1, 2), 7, 0, 0 },
		{ ALU64_REG(MOD, 1, 2), 7, 0, 7 },
		{ ALU32_REG(MOD, 1, 2), 0x500000007, 0, 7 },
		{ ALU64_REG(DIV, 1, 2), (uint64_t)-7, 2, 0x7ffffffffffffffc },
		{ INSN(BPF_ALU64 | BPF_DIV | BPF_X, 1, 2, 1, 0), (uint64_t)-7, 2, (uint64_t)-3 },
		{ INSN(BPF_ALU64 | BPF_MOD | BPF_X, 1, 2, 1, 0), (uint64_t)-7, 2, (uint64_t)-1 },
		{ INSN(BPF_ALU64 | BPF_DIV | BPF_X, 1, 2, 1, 0), low, (uint64_t)-1, low },
		{ INSN(BPF_ALU64 | BPF_MOD | BPF_X, 1, 2, 1, 0), low, (uint64_t)-1, 0 },
		{ INSN(BPF_ALU | BPF_DIV | BPF_X, 1, 2, 1, 0), 0xfffffff9, 2, 0xfffffffd },
		{ INSN(BPF_ALU | BPF_DIV | BPF_X, 1, 2, 1, 0), 0x80000000, ~0u, 0x80000000 },
		{ INSN(BPF_ALU | BPF_END | BPF_X, 1, 0, 0, 16), 0x1234567, 0, 0x6745 },
		{ INSN(BPF_ALU | BPF_END | BPF_X, 1, 0, 0, 32), 0x1234567, 0, 0x67452301 },
		{ INSN(BPF_ALU64 | BPF_END, 1, 0, 0, 64), 0x1234567, 0, 0x6745230100000000 },
		{ INSN(BPF_ALU | BPF_END, 1, 0, 0, 16), 0x1234567, 0, 0x4567 },
		{ INSN(BPF_ALU | BPF_END, 1, 0, 0, 64), low, 0, low },
		{ INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 2, 8, 0), 0, 0x80, (uint64_t)-128 },
		{ INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 2, 32, 0), 0, 0x17fffffff, 0x7fffffff },
		{ INSN(BPF_ALU | BPF_MOV | BPF_X, 1, 2, 16, 0), 0, 0x8000, 0xffff8000 },
		{ ALU64_REG(MOV, 1, 2), 1, low, low },
		{ ALU64_REG(LSH, 1, 2), 1, 65, 2 },
		{ ALU32_REG(ARSH, 1, 2), 0x80000000, 33, 0xc0000000 },
		{ ALU64_REG(ARSH, 1, 2), low, 63, (uint64_t)-1 },
		{ ALU32_REG(SUB, 1, 2), 0, 1, 0xffffffff },
	};
	uint64_t v = 5;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_true(ebpf_alu(&t[i].ins, t[i].a, t[i].b, &v));
		if (v != t[i].want)
			fail_msg("%zu: %#llx", i, (unsigned long long)v);
	}
	assert_false(ebpf_alu(&INSN(BPF_ALU64 | 0xe0, 1, 2, 0, 0), 1, 1, &v));
	assert_int_equal(ebpf_sign_extend(0x80, 8), (uint64_t)-128);
}

static void test_helper_names(void **state)
{
	assert_string_equal(ebpf_helper_name(BPF_FUNC_ringbuf_reserve), "ringbuf_reserve");
	assert_null(ebpf_helper_name(0));
	assert_null(ebpf_helper_name(1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_alu),
		cmocka_unit_test(test_helper_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
