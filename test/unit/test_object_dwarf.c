/* What libdw reads ends where it can see it: sections of a mapped file as they are, others with bytes behind them. */
#include <gelf.h>

#include "program/object/dwarf.h"
#include "unit.h"

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static Dwarf *open_file(Dwfl *d, const char *path, struct dwarf_copies *c)
{
	Dwarf_Addr bias;
	Dwfl_Module *m;

	dwfl_report_begin(d);
	m = dwfl_report_offline(d, "", path, -1);
	dwfl_report_end(d, NULL, NULL);
	assert_non_null(m);
	return dwarf_of_module(m, &bias, c);
}

static const Elf_Data *section(Dwarf *d, const char *name)
{
	Elf *elf = dwarf_getelf(d);
	Elf_Scn *s = NULL;
	size_t strings;
	GElf_Shdr h;

	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &h) && !strcmp(elf_strptr(elf, strings, h.sh_name), name))
			return elf_getdata(s, NULL);
	fail_msg("no section %s", name);
	return NULL;
}

/* This program, whose sections lie in the mapped file. */
static void test_mapped(void **state)
{
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&callbacks);
	Dwarf *dw = open_file(d, "/proc/self/exe", &c);

	assert_non_null(dw);
	assert_int_equal(c.v.n, 0);
	assert_non_null(section(dw, ".debug_info"));
	dwfl_end(d);
	dwarf_copies_free(&c);
}

/* Its .debug_line_str, which libelf takes for a hash table, is a copy whose last string has no NUL. */
static void test_no_nul(void **state)
{
	struct dwarf_copies c = { 0 };
	Dwfl *d = dwfl_begin(&callbacks);
	Dwarf *dw = open_file(d, "test/fuzz/corpus/dwarf/line-strings", &c);
	const Elf_Data *strings;
	const char *s;

	assert_non_null(dw);
	assert_int_equal(c.v.n, 1);
	strings = section(dw, ".debug_line_str");
	assert_ptr_equal(strings->d_buf, c.v.v[0]);
	s = strings->d_buf;
	assert_int_equal(strings->d_size, 36);
	assert_memory_equal(s, "/home/", 6);
	assert_string_equal(s + 28, "<st.gnu.");
	for (int i = 36; i < 64; i++)
		assert_int_equal(s[i], 0);
	dwfl_end(d);
	dwarf_copies_free(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_no_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
