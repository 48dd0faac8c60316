/* Debugging information that its author made to keep its reader busy: units of this program,
 * written by hand. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/pid_args.h"
#include "program/object/dwarf.h"
#include "program/symbol/symbol_private.h"
#include "unit.h"

extern const char __executable_start[];
void hostile_many(void);
void hostile_last(void);
void hostile_named(void);

/* A function whose parameter is a union of 8 bytes with 60 members of the union's own type. */
asm(".pushsection .text.hostile, \"ax\", @progbits\n"
    ".globl hostile_many\n"
    ".type hostile_many, @function\n"
    "hostile_many: ret\n"
    "hostile_end: .size hostile_many, hostile_end - hostile_many\n"
    ".popsection\n"
    ".pushsection .debug_abbrev, \"\", @progbits\n"
    "hostile_abbrevs:\n"
    /* 1: DW_TAG_compile_unit with children: low_pc, high_pc */
    ".uleb128 1, 0x11; .byte 1; .uleb128 0x11, 1, 0x12, 6, 0, 0\n"
    /* 2: DW_TAG_union_type with children: name, byte_size */
    ".uleb128 2, 0x17; .byte 1; .uleb128 3, 8, 0xb, 0xb, 0, 0\n"
    /* 3: DW_TAG_member: name, type */
    ".uleb128 3, 0xd; .byte 0; .uleb128 3, 8, 0x49, 0x13, 0, 0\n"
    /* 4: DW_TAG_subprogram with children: name, low_pc, high_pc */
    ".uleb128 4, 0x2e; .byte 1; .uleb128 3, 8, 0x11, 1, 0x12, 6, 0, 0\n"
    /* 5: DW_TAG_formal_parameter: name, type */
    ".uleb128 5, 5; .byte 0; .uleb128 3, 8, 0x49, 0x13, 0, 0\n"
    /* 6: DW_TAG_base_type: name, byte_size, encoding */
    ".uleb128 6, 0x24; .byte 0; .uleb128 3, 8, 0xb, 0xb, 0x3e, 0xb, 0, 0\n"
    /* 7: DW_TAG_variable without attributes */
    ".uleb128 7, 0x34; .byte 0; .uleb128 0, 0\n"
    /* 8: DW_TAG_member: name in .debug_str */
    ".uleb128 8, 0xd; .byte 0; .uleb128 3, 0xe, 0, 0\n"
    ".byte 0\n"
    ".popsection\n"
    ".pushsection .debug_info, \"\", @progbits\n"
    "hostile_unit: .long hostile_unit_end - . - 4\n"
    ".short 4; .long hostile_abbrevs; .byte 8\n"
    ".uleb128 1; .quad hostile_many; .long hostile_end - hostile_many\n"
    "hostile_long: .uleb128 6; .asciz \"hostile_long\"; .byte 8, 5\n"
    "hostile_union: .uleb128 2; .asciz \"hostile\"; .byte 8\n"
    ".rept 60\n"
    ".uleb128 3; .asciz \"m\"; .long hostile_union - hostile_unit\n"
    ".endr\n"
    ".byte 0\n"
    ".uleb128 4; .asciz \"hostile_many\"\n"
    ".quad hostile_many; .long hostile_end - hostile_many\n"
    ".uleb128 5; .asciz \"first\"; .long hostile_long - hostile_unit\n"
    ".uleb128 5; .asciz \"second\"; .long hostile_union - hostile_unit\n"
    ".uleb128 5; .asciz \"third\"; .long hostile_long - hostile_unit\n"
    ".byte 0\n"
    ".byte 0\n"
    "hostile_unit_end:\n"
    ".popsection\n"
    ".pushsection .debug_aranges, \"\", @progbits\n"
    ".long 44; .short 2; .long hostile_unit; .byte 8, 0; .long 0\n"
    ".quad hostile_many, hostile_end - hostile_many, 0, 0\n"
    ".popsection\n");

/* A unit with 2,000 variables, and behind them a function. */
asm(".pushsection .text.hostile\n"
    ".globl hostile_last\n"
    ".type hostile_last, @function\n"
    "hostile_last: .fill 200, 1, 0x90; ret\n"
    "hostile_last_end: .size hostile_last, hostile_last_end - hostile_last\n"
    ".popsection\n"
    ".pushsection .debug_info\n"
    "hostile_variables: .long hostile_variables_end - . - 4\n"
    ".short 4; .long hostile_abbrevs; .byte 8\n"
    ".uleb128 1; .quad hostile_last; .long hostile_last_end - hostile_last\n"
    ".fill 2000, 1, 7\n"
    ".uleb128 4; .asciz \"hostile_last\"\n"
    ".quad hostile_last; .long hostile_last_end - hostile_last\n"
    ".byte 0\n"
    ".byte 0\n"
    "hostile_variables_end:\n"
    ".popsection\n"
    ".pushsection .debug_aranges\n"
    ".long 44; .short 2; .long hostile_variables; .byte 8, 0; .long 0\n"
    ".quad hostile_last, hostile_last_end - hostile_last, 0, 0\n"
    ".popsection\n");

/* A unit with a union whose 60,000 members have one name of 16,000 bytes, and with a function that
 * has a parameter of it. */
asm(".pushsection .text.hostile\n"
    ".globl hostile_named\n"
    ".type hostile_named, @function\n"
    "hostile_named: ret\n"
    "hostile_named_end: .size hostile_named, hostile_named_end - hostile_named\n"
    ".popsection\n"
    ".pushsection .debug_str, \"MS\", @progbits, 1\n"
    "hostile_name: .fill 16000, 1, 'a'; .byte 0\n"
    ".popsection\n"
    ".pushsection .debug_info\n"
    "hostile_names: .long hostile_names_end - . - 4\n"
    ".short 4; .long hostile_abbrevs; .byte 8\n"
    ".uleb128 1; .quad hostile_named; .long hostile_named_end - hostile_named\n"
    "hostile_wide: .uleb128 2; .asciz \"wide\"; .byte 8\n"
    ".rept 60000\n"
    ".uleb128 8; .long hostile_name\n"
    ".endr\n"
    ".byte 0\n"
    ".uleb128 4; .asciz \"hostile_named\"\n"
    ".quad hostile_named; .long hostile_named_end - hostile_named\n"
    ".uleb128 5; .asciz \"wide\"; .long hostile_wide - hostile_names\n"
    ".byte 0\n"
    ".byte 0\n"
    "hostile_names_end:\n"
    ".popsection\n"
    ".pushsection .debug_aranges\n"
    ".long 44; .short 2; .long hostile_names; .byte 8, 0; .long 0\n"
    ".quad hostile_named, hostile_named_end - hostile_named, 0, 0\n"
    ".popsection\n");

/* The way in which the union is passed is not known, nor which register has what comes behind
 * it. */
static void test_union_of_itself(void **state)
{
	struct type_graph *g = type_graph_new();
	struct probe_set ps = { .types = g };
	struct probe p = { .func = "hostile_many", .name = "entry", .object = "/proc/self/exe" };
	struct probe_args args = { 0 };

	p.addr = (uintptr_t)hostile_many - (uintptr_t)__executable_start;
	assert_null(pid_args(&ps, &p, &args));
	assert_true(args.known);
	assert_int_equal(args.ntyped, 1);
	assert_int_equal(args.typed[0].source, ARG_REG);
	type_graph_free(g);
}

/* The unit is read once for all addresses. A file that takes too much work has no lines. */
static void test_large_unit(void **state)
{
	enum { ADDRESSES = 200 };
	const uint64_t at = (uintptr_t)hostile_last - (uintptr_t)__executable_start;

	for (int enough = 0; enough < 2; enough++) {
		struct symbols *s = symbols_new();
		const struct source_place *places;
		struct symbols_losses losses;
		struct object *o;

		symbols_limit(s, &(struct symbols_limits){ .source_work = enough ? 4000 : 1000 });
		o = symbols_object_at(s, "/proc/self/exe");
		assert_non_null(o);
		for (uint32_t i = 0; i < ADDRESSES; i++) {
			assert_int_equal(object_source(s, o, at + i, &places), enough);
			if (enough)
				assert_string_equal(places->function, "hostile_last");
		}
		symbols_losses(s, &losses);
		assert_int_equal(losses.limited, enough ? 0 : ADDRESSES);
		symbols_free(s);
	}
}

/* A member is a few bytes of the file, and its name is kept. */
static void test_names_without_end(void **state)
{
	const uint64_t at = (uintptr_t)hostile_named - (uintptr_t)__executable_start;
	struct type_graph *g = type_graph_new();
	const struct type_param *params;
	const struct type_member *members;
	bool varargs;
	uint64_t kept = 0;
	uint32_t n;
	type_id func;

	assert_true(type_user_func(g, "/proc/self/exe", at, &func));
	params = type_params(g, func, &n, &varargs);
	assert_int_equal(n, 1);
	assert_false(type_user_is_cut(g));
	members = type_members(g, params[0].type, &n);

	for (uint32_t i = 0; i < n; i++)
		kept += strlen(members[i].name);
	assert_in_range(kept, 400ull << 20, (uint64_t)TYPE_USER_MB << 20);
	assert_true(type_user_is_cut(g));
	type_graph_free(g);
}

enum { PATH_BYTES = 32 };

/* Makes a file of what a command makes of a program. */
static void make_file(const char *command, char path[PATH_BYTES])
{
	cleanup_free char *whole = NULL;
	int fd;

	snprintf(path, PATH_BYTES, "/tmp/descry-hostile-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	whole = xasprintf("%s /bin/true > %s", command, path);
	assert_int_equal(system(whole), 0);
}

/* libdw would unpack it. */
static void test_packed(void **state)
{
	char path[PATH_BYTES];
	Dwfl *d = dwfl_begin(&dwarf_callbacks);

	make_file("gzip -c", path);
	assert_null(dwarf_report(d, "packed", path));
	assert_non_null(dwarf_report(d, "plain", "/bin/true"));
	dwfl_end(d);
	unlink(path);
}

/* Another user's file. */
static void test_owner(void **state)
{
	char path[PATH_BYTES];
	Dwfl *d = dwfl_begin(&dwarf_callbacks);

	make_file("cat", path);
	assert_non_null(dwarf_report(d, "own", path));
	assert_null(dwarf_untrusted());
	assert_int_equal(chmod(path, 0666), 0);
	assert_null(dwarf_report(d, "anybody's", path));
	assert_string_equal(dwarf_untrusted(), "anybody's");
	assert_int_equal(chmod(path, 0644), 0);
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_null(dwarf_report(d, "its", path));
		setenv("SUDO_UID", "65534", 1);
		assert_non_null(dwarf_report(d, "sudo", path));
		unsetenv("SUDO_UID");
		dwarf_trust_all(true);
		assert_non_null(dwarf_report(d, "all", path));
		dwarf_trust_all(false);
	}
	dwfl_end(d);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union_of_itself),
		cmocka_unit_test(test_large_unit),
		cmocka_unit_test(test_names_without_end),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
