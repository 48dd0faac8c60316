/* stapsdt operands, and USDT probes of the program test/tracee/usdt.c when it is built beside this
 * test. */
#include "base/mem.h"
#include "probe/usdt.h"
#include "unit.h"

struct good {
	const char *text;
	int size, mode;
	int64_t disp;
	int base, index, scale, shift;
};

static const struct good good[] = {
	{ "8@%rdi", 8, USDT_REG, 0, UREG_RDI, -1, 1, 0 },
	{ "-4@%edi", -4, USDT_REG, 0, UREG_RDI, -1, 1, 0 },
	{ "1@%al", 1, USDT_REG, 0, UREG_RAX, -1, 1, 0 },
	{ "1@%ah", 1, USDT_REG, 0, UREG_RAX, -1, 1, 8 },
	{ "1@%sil", 1, USDT_REG, 0, UREG_RSI, -1, 1, 0 },
	{ "-2@%r10w", -2, USDT_REG, 0, UREG_R10, -1, 1, 0 },
	{ "4@%r15d", 4, USDT_REG, 0, UREG_R15, -1, 1, 0 },
	{ "%bx", -2, USDT_REG, 0, UREG_RBX, -1, 1, 0 },
	{ "%r9", -8, USDT_REG, 0, UREG_R9, -1, 1, 0 },
	{ "-4@$5", -4, USDT_CONST, 5, -1, -1, 1, 0 },
	{ "4@$-1", 4, USDT_CONST, 0xffffffff, -1, -1, 1, 0 },
	{ "-8@$-1", -8, USDT_CONST, -1, -1, -1, 1, 0 },
	{ "8@$0xffffffffffffffff", 8, USDT_CONST, -1, -1, -1, 1, 0 },
	{ "-1@$255", -1, USDT_CONST, -1, -1, -1, 1, 0 },
	{ "4@-0x14(%rbp)", 4, USDT_MEM, -0x14, UREG_RBP, -1, 1, 0 },
	{ "-4@-20(%rbp)", -4, USDT_MEM, -20, UREG_RBP, -1, 1, 0 },
	{ "8@(%rsp)", 8, USDT_MEM, 0, UREG_RSP, -1, 1, 0 },
	{ "8@8+16(%rsp)", 8, USDT_MEM, 24, UREG_RSP, -1, 1, 0 },
	{ "4@(%rax,%rbx,4)", 4, USDT_MEM, 0, UREG_RAX, UREG_RBX, 4, 0 },
	{ "4@12(%rax,%rbx)", 4, USDT_MEM, 12, UREG_RAX, UREG_RBX, 1, 0 },
	{ "2@-8(,%rcx,8)", 2, USDT_MEM, -8, -1, UREG_RCX, 8, 0 },
	{ "8@4096", 8, USDT_MEM, 4096, -1, -1, 1, 0 },
};

static void test_good_operands(void **state)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(good); i++) {
		const struct good *g = &good[i];
		struct usdt_operand op;
		const char *reason = "";

		if (!usdt_parse_operand(g->text, strlen(g->text), NULL, 0, &op, &reason))
			fail_msg("%s: %s", g->text, reason);
		if (op.size != g->size || (int)op.mode != g->mode || op.disp != g->disp ||
		    (g->mode != USDT_CONST &&
		     (op.base != g->base || op.index != g->index || op.scale != g->scale)) ||
		    op.reg_shift != g->shift)
			fail_msg("%s: size %d mode %d disp %lld base %d index %d scale %d shift %d",
				 g->text, op.size, (int)op.mode, (long long)op.disp, op.base,
				 op.index, op.scale, op.reg_shift);
	}
}

static void test_bad_operands(void **state)
{
	static const char *const bad[] = {
		"8@%xmm0",       "8f@%xmm1", "-8f@8(%rsp)", "4@%st",           "8@%fs:16",
		"8@%rzz",        "",         "8@",          "3@%rax",          "8@foo(%rip)",
		"8@16(%rip)",    "8@(%eax)", "8@(%rax",     "8@(%rax,%rbx,3)", "8@%rax trailing",
		"8@$",           "8@$foo",   "8@8+(%rax)",  "8@--4(%rax)",     "99999999999@%rax",
		"8@(%rax,%rip)",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct usdt_operand op;
		const char *reason = NULL;

		if (usdt_parse_operand(bad[i], strlen(bad[i]), NULL, 0, &op, &reason))
			fail_msg("%s: accepted", bad[i]);
		assert_non_null(reason);
	}
}

static void test_split(void **state)
{
	const char *text = " -4@%edi  8@8(%rax, %rbx, 4) 4@$1 ", *start;
	size_t n;

	assert_true(usdt_next_operand(&text, &start, &n));
	assert_memory_equal(start, "-4@%edi", n);
	assert_true(usdt_next_operand(&text, &start, &n));
	assert_memory_equal(start, "8@8(%rax, %rbx, 4)", n);
	assert_true(usdt_next_operand(&text, &start, &n));
	assert_memory_equal(start, "4@$1", n);
	assert_false(usdt_next_operand(&text, &start, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_operands),
		cmocka_unit_test(test_bad_operands),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
