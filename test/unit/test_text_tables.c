/* Machine code written by hand: indirect jumps, whose targets stand in a table or nowhere. */
#include "text_make.h"

/* cmp $3,%edi; ja 9f; lea table(%rip),%rdx; mov %edi,%edi; movslq (%rdx,%rdi,4),%rax; add
 * %rdx,%rax; notrack jmp *%rax 24: mov %eax,%ecx; 26: inc %eax; 28: ret; 29: inc %eax; 9: ret */
static const char switch_code[] =
	"\x83\xff\x03\x77\x1a\x48\x8d\x15\xf4\x21\0\0\x89\xff\x48\x63\x04\xba"
	"\x48\x01\xd0\x3e\xff\xe0\x89\xc1\xff\xc0\xc3\xff\xc0\xc3\xc3";

static void test_table(void **state)
{
	/* the first entry leads out of the function: it must not end the table */
	int32_t data[] = { 0x7000000, T + 24 - D, T + 29 - D, T + 26 - D };
	struct made m = make(switch_code, 33, data, sizeof(data),
			     SYMBOLS(FUNC("f", 0, 32), FUNC("g", 32, 1)));
	struct text_stats st;

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	/* 26 is a target: inc, ret, and the inc behind it stay apart */
	expect_site(exits[0], TEXT_TRAP, 28, 0, 1, 1);
	expect_site(exits[1], TEXT_TRAP, 31, 0, 1, 1);
	text_stats(m.text, &st);
	assert_int_equal(st.unresolved, 0);
	end(&m);
	/* without the entry 26, the ret can be moved with the instruction before it */
	data[3] = T + 24 - D;
	m = make(switch_code, 33, data, sizeof(data), SYMBOLS(FUNC("f", 0, 32), FUNC("g", 32, 1)));
	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	expect_site(exits[0], TEXT_PATCH, 24, 4, 5, 5);
	end(&m);
}

static void test_unresolved(void **state)
{
	/* lea (%rdi,%rsi),%rax; jmp *%rax; mov %eax,%ecx; mov $1,%eax; ret; padding */
	struct made m =
		make(CODE("\x48\x8d\x04\x37\x85\xff\x74\x02\xff\xe0\x89\xc1\xb8\x01\0\0\0\xc3"),
		     NULL, 0, SYMBOLS(FUNC("f", 0, 18)));
	struct text_stats st;

	begin(&m);
	/* the entry, and sites of one instruction */
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	expect_site(offset(&m, 0, 12), TEXT_PATCH, 12, 0, 5, 5);
	expect_reason(offset(&m, 0, 10), TEXT_TRAP, "indirect jump");
	assert_int_equal(returns(&m, 0), -1);
	assert_non_null(strstr(exits_reason, "indirect jump"));
	text_stats(m.text, &st);
	assert_int_equal(st.unresolved, 1);
	end(&m);
}

static void test_absolute_table(void **state)
{
	/* not PIE: jmp *table(,%rdi,8); 7: inc %eax; mov %eax,%ecx; 11: inc; ret; the entries are
	 * words of the data */
	uint64_t data[] = { T + 7, T + 11 };
	struct made m = make(CODE("\xff\x24\xfd\0\x34\0\0\xff\xc0\x89\xc1\xff\xc0\xc3\xc3"), data,
			     sizeof(data), SYMBOLS(FUNC("f", 0, 14), FUNC("g", 14, 1)));

	((Elf64_Ehdr *)(void *)m.e.image)->e_type = ET_EXEC;
	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 13, 0, 1, 1);
	end(&m);
	/* the same with functions in the table: tail calls */
	data[0] = data[1] = T + 14;
	m = make(CODE("\xff\x24\xfd\0\x34\0\0\xff\xc0\x89\xc1\xff\xc0\xc3\xc3"), data, sizeof(data),
		 SYMBOLS(FUNC("f", 0, 7), FUNC("g", 14, 1)));
	((Elf64_Ehdr *)(void *)m.e.image)->e_type = ET_EXEC;
	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_PATCH, 0, 0, 7, 7);
	assert_int_equal(exits[0].kind, WIRE_STUB_TAIL);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_unresolved),
		cmocka_unit_test(test_absolute_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
