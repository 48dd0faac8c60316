#include "unit.h"

#include "base/diag.h"
#include "base/mem.h"

static char *printed(const struct diags *d, const struct diag_style *style)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	diags_print(d, style, f);
	fclose(f);
	return text;
}

static void expect(const struct diags *d, struct diag_style style, const char *want)
{
	cleanup_free char *got = printed(d, &style);

	assert_string_equal(got, want);
}

static void test_caret(void **state)
{
	struct diags d;
	struct source *s;
	const char *text = "BEGIN\n{\n\tprinta(@x);\n}\n";

	diags_init(&d);
	s = source_add(&d, SOURCE_FILE, "hot.d", text, strlen(text));
	diag_error(&d, s->base + 16, s->base + 18, "D_AGG_NULL", "unknown aggregation %s", "@x");
	diag_note(&d, 0, 0, "declare it");
	expect(&d, (struct diag_style){ 0 },
	       "hot.d:3:9: error: unknown aggregation @x [D_AGG_NULL]\n"
	       "    3 | \tprinta(@x);\n"
	       "      | \t       ^~\n"
	       "note: declare it\n");
	expect(&d, (struct diag_style){ .dtrace = true, .progname = "dtrace" },
	       "dtrace: failed to compile script hot.d: line 3: unknown aggregation @x\n");
	expect(&d, (struct diag_style){ .dtrace = true, .errtags = true },
	       "dtrace: failed to compile script hot.d: [D_AGG_NULL] line 3: unknown aggregation @x\n");
	assert_int_equal(d.errors, 1);
	diags_fini(&d);
}

/* DTrace stops at its first error: print one error, whatever follows. */
static void expect_arg(uint32_t at, const char *tag, const char *text, const char *want)
{
	const char *program = "BEGIN /x/ { y = 1 }";
	struct diags d;
	struct source *s;

	diags_init(&d);
	source_add(&d, SOURCE_LIB, "lib", "int a;\n", 7);
	s = source_add(&d, SOURCE_ARG, program, program, strlen(program));
	diag_error(&d, s->base + at, 0, tag, "%s", text);
	diag_error(&d, s->base, 0, "D_UNKNOWN", "another");
	expect(&d, (struct diag_style){ .dtrace = true }, want);
	diags_fini(&d);
}

static void test_arg(void **state)
{
	expect_arg(7, "D_IDENT_UNDEF", "no x",
		   "dtrace: invalid probe specifier BEGIN /x/ { y = 1 }: in predicate: no x\n");
	expect_arg(12, "D_IDENT_UNDEF", "no y",
		   "dtrace: invalid probe specifier BEGIN /x/ { y = 1 }: in action list: no y\n");
	expect_arg(19, "D_SYNTAX", "end",
		   "dtrace: invalid probe specifier BEGIN /x/ { y = 1 }: end\n");
	expect_arg(12, "D_MACRO_OFLOW", "too big",
		   "dtrace: invalid probe specifier BEGIN /x/ { y = 1 }: too big\n");
}

static void test_positions(void **state)
{
	struct diags d;
	struct source *s;
	const char *text =
		"# 1 \"a.d\"\nx\n# 7 \"inc.h\" 1\ny\nz\n#line 3 \"a.d\"\nw\n#pragma D option quiet\nv";
	const char *name;
	uint32_t line, col, base;

	diags_init(&d);
	assert_false(source_pos(&d, 1, &name, &line, &col));
	source_add(&d, SOURCE_ARG, "-n", "", 0);
	s = source_add(&d, SOURCE_FILE, "pre.d", text, strlen(text));
	base = s->base;
	source_add(&d, SOURCE_FILE, "last.d", "q", 1);
	assert_false(source_pos(&d, 0, &name, &line, &col));

	assert_true(
		source_pos(&d, base + (uint32_t)(strchr(text, 'y') - text), &name, &line, &col));
	assert_string_equal(name, "inc.h");
	assert_int_equal(line, 7);
	assert_int_equal(col, 1);
	assert_true(
		source_pos(&d, base + (uint32_t)(strstr(text, "z\n") - text), &name, &line, &col));
	assert_int_equal(line, 8);
	assert_true(source_pos(&d, base + (uint32_t)(strstr(text, "\nv") + 1 - text), &name, &line,
			       &col));
	assert_string_equal(name, "a.d");
	assert_int_equal(line, 5);
	assert_string_equal(source_of(&d, base)->name, "pre.d");
	assert_string_equal(source_of(&d, base + (uint32_t)strlen(text))->name, "pre.d");
	assert_string_equal(source_of(&d, base + (uint32_t)strlen(text) + 1)->name, "last.d");
	assert_string_equal(source_of(&d, 1)->name, "-n");
	assert_null(source_of(&d, base + 10000));
	diags_fini(&d);
}

/* A line of a megabyte: the part around the caret, in characters that can be seen. */
static void test_window(void **state)
{
	enum { LINE = 1 << 20, AT = 500000 };
	cleanup_free char *text = xmalloc(LINE + 1), *got;
	struct diags d;
	struct source *s;

	memset(text, 'a', LINE);
	text[LINE] = '\0';
	memcpy(text + AT - 4, "\033\303\251!", 4); /* ESC and an accent in front of the caret */
	diags_init(&d);
	s = source_add(&d, SOURCE_FILE, "w.d", text, LINE);
	diag_error(&d, s->base + AT, s->base + LINE, "D_X", "here");
	diag_error(&d, s->base, 0, "D_X", "%s", text);
	got = printed(&d, &(struct diag_style){ 0 });
	assert_true(strlen(got) < 3000);
	assert_non_null(strstr(got, "w.d:1:500001: error: here [D_X]\n    1 | ...aaaa"));
	assert_non_null(strstr(got, "a?\303\251!aaa"));
	/* "    1 | ..." and 100 bytes, which are 99 characters, stand in front of the caret */
	assert_non_null(strstr(got, "\n      |    "));
	assert_int_equal(strchr(strstr(got, "\n      |    "), '^') - strstr(got, "\n      |    "),
			 1 + 8 + 3 + 99);
	assert_non_null(strstr(got, "aaa...\n      | ^\n"));
	assert_non_null(strstr(got, "aaa... [D_X]\n"));
	diags_fini(&d);
}

/* Warnings are bounded as errors are, and their notes. */
static void test_warnings(void **state)
{
	struct diags d;

	diags_init(&d);
	d.limit = 1;
	for (uint32_t i = 0; i < 3; i++) {
		diag_warn(&d, 0, 0, "D_W", "w%u", i);
		diag_note(&d, 0, 0, "n%u", i);
	}
	assert_false(diags_full(&d));
	diag_error(&d, 0, 0, "D_X", "e");
	diag_note(&d, 0, 0, "of e");
	assert_true(diags_full(&d));
	expect(&d, (struct diag_style){ 0 },
	       "descry: warning: w0 [D_W]\nnote: n0\ndescry: error: e [D_X]\nnote: of e\n"
	       "descry: 2 more warnings not shown\n");
	diags_fini(&d);
}

static void test_limit(void **state)
{
	struct diags d;
	struct source *s;

	diags_init(&d);
	d.limit = 2;
	s = source_add(&d, SOURCE_FILE, "f", "abc", 3);
	for (uint32_t i = 0; i < 5; i++) {
		diag_error(&d, s->base + i % 3, 0, "D_X", "e%u", i);
		diag_note(&d, 0, 0, "n%u", i);
	}
	assert_int_equal(d.errors, 5);
	expect(&d, (struct diag_style){ 0 },
	       "f:1:1: error: e0 [D_X]\n    1 | abc\n      | ^\nnote: n0\n"
	       "f:1:2: error: e1 [D_X]\n    1 | abc\n      |  ^\nnote: n1\n"
	       "descry: 3 more errors not shown\n");
	diags_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caret),     cmocka_unit_test(test_arg),
		cmocka_unit_test(test_positions), cmocka_unit_test(test_window),
		cmocka_unit_test(test_warnings),  cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
