#include "unit.h"

#include "go_make.h"
#include "program/object/go.h"
#include "program/unwind/unwind.h"

/* sub $24,%rsp after 4 bytes, add after 32; a leaf; functions that switch stacks, with and without
 * a frame. */
static const struct go_make_function functions[] = {
	{ "main.main", 64, 0, "\2\4\x30\x20\x2f\x1c" },
	{ "main.(*T).Leaf", 32, 0, "\2\x20" },
	{ "runtime.goexit", 16, 1, "\2\x10" },
	{ "runtime.systemstack", 48, 2, "\2\x30" },
	{ "runtime.mcall", 48, 2, "\2\x30" },
	{ "runtime.nanotime1", 64, 2, "\2\4\x20\x3c" },
	{ "runtime.sigtramp", 64, 1, "\2\4\x20\x3c" },
	{ "runtime.sigreturn", 16, 0, "\2\x10" },
	{ "main.none", 16, 0, "" },
};
enum { N = ARRAY_SIZE(functions) };

static struct object *open_made(uint32_t magic, uint64_t text, enum go_make_kind kind,
				uint64_t relocated)
{
	struct go_making t = go_make_table(magic, text, functions, N);
	struct go_making e = go_make_elf(t.p, t.n, kind, relocated);
	struct object *o;

	assert_null(object_open_memory("made", e.p, e.n, &o));
	free(t.p);
	free(e.p);
	return o;
}

static void check_functions(struct object *o)
{
	struct go_table t;
	uint64_t at = GO_TEXT;

	assert_true(object_is_go(o));
	assert_true(go_table_read(o, &t));
	assert_int_equal(t.functions.n, N);
	for (uint32_t i = 0; i < N; i++) {
		const struct go_function *f = &t.functions.v[i];
		bool is_top = !strcmp(f->name, "runtime.goexit"),
		     moves = !strcmp(f->name, "runtime.systemstack") ||
			     !strcmp(f->name, "runtime.mcall") ||
			     !strcmp(f->name, "runtime.nanotime1");

		assert_string_equal(f->name, functions[i].name);
		assert_int_equal(f->start, at);
		at += functions[i].size;
		assert_int_equal(f->end, at);
		assert_int_equal(f->is_top, is_top);
		assert_int_equal(f->moves_stack, moves);
	}
	go_table_fini(&t);
	assert_string_equal(object_find_addr(o, GO_TEXT + 70)->name, "main.(*T).Leaf");
	assert_int_equal(object_find_name(o, "runtime.goexit")->addr, GO_TEXT + 96);
}

static void test_formats(void **state)
{
	static const uint32_t magics[] = { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		struct object *o = open_made(magics[i], GO_TEXT, GO_FIXED, 0);

		check_functions(o);
		object_free(o);
	}
}

/* Among other things in a section, where the system's linker has put it. */
static void test_system_linker(void **state)
{
	struct object *o = open_made(GO_1_18, 0, GO_SYSTEM, GO_TEXT);

	check_functions(o);
	object_free(o);
	o = open_made(GO_1_16, GO_TEXT, GO_SYSTEM, 0);
	check_functions(o);
	object_free(o);
}

/* The head's address of the text comes from a relocation; without any, it is .text's. */
static void test_text_start(void **state)
{
	struct object *o = open_made(GO_1_20, 0, GO_PIE, GO_TEXT);

	check_functions(o);
	object_free(o);
	o = open_made(GO_1_20, 0, GO_FIXED, 0);
	check_functions(o);
	object_free(o);
}

static void test_depths(void **state)
{
	static const struct go_depth want[] = {
		{ GO_TEXT, GO_TEXT + 4, 0, 0 },
		{ GO_TEXT + 4, GO_TEXT + 36, 24, 0 },
		{ GO_TEXT + 36, GO_TEXT + 64, 0, 0 },
	};
	struct object *o = open_made(GO_1_18, GO_TEXT, GO_FIXED, 0);
	struct go_table t;
	struct go_depth d = { 0 };

	assert_true(go_table_read(o, &t));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(go_depth_next(&t, &t.functions.v[0], &d));
		assert_int_equal(d.addr, want[i].addr);
		assert_int_equal(d.end, want[i].end);
		assert_int_equal(d.bytes, want[i].bytes);
	}
	assert_false(go_depth_next(&t, &t.functions.v[0], &d));
	go_table_fini(&t);
	object_free(o);
}

static void check_rule(const struct unwind_image *u, const char *name, uint64_t offset,
		       const char *want)
{
	uint64_t at = GO_TEXT;
	char text[100];

	for (uint32_t i = 0; strcmp(functions[i].name, name); i++)
		at += functions[i].size;
	unwind_rule_format(unwind_image_rule(u, at + offset), text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_rules(void **state)
{
	struct object *o = open_made(GO_1_18, GO_TEXT, GO_FIXED, 0);
	struct unwind_image *u;

	assert_null(unwind_image_build(o, &u));
	check_rule(u, "main.main", 0, "CFA=rsp+8");
	check_rule(u, "main.main", 4, "CFA=rsp+32 rbp=*(cfa-16)");
	check_rule(u, "main.main", 35, "CFA=rsp+32 rbp=*(cfa-16)");
	check_rule(u, "main.main", 36, "CFA=rsp+8");
	check_rule(u, "main.(*T).Leaf", 31, "CFA=rsp+8");
	check_rule(u, "runtime.goexit", 1, "stop");
	check_rule(u, "runtime.systemstack", 0, "CFA=rsp+8");
	check_rule(u, "runtime.systemstack", 20, "CFA=rbp+16, another stack rbp=*(cfa-16)");
	check_rule(u, "runtime.mcall", 20, "stop");
	check_rule(u, "runtime.nanotime1", 2, "CFA=rsp+8");
	check_rule(u, "runtime.nanotime1", 5, "CFA=rsp+24 rbp=*(cfa-16)"); /* rbp is not set up */
	check_rule(u, "runtime.nanotime1", 20, "CFA=rbp+16, another stack rbp=*(cfa-16)");
	check_rule(u, "runtime.sigtramp", 20, "CFA=rsp+24 rbp=*(cfa-16)");
	check_rule(u, "runtime.sigtramp", 62, "CFA=rsp+24 rbp=*(cfa-16)");
	check_rule(u, "runtime.sigreturn", 0, "sigreturn");
	check_rule(u, "runtime.sigtramp", 63, "sigreturn"); /* the byte before */
	check_rule(u, "main.none", 3, "none");
	assert_int_equal(u->head->skipped, 1);
	unwind_image_free(u);
	object_free(o);
}

/* Numbers that do not end, which many functions share; a table in the midst of other things. */
static void test_hostile(void **state)
{
	struct go_making t = go_make_table(GO_1_20, GO_TEXT, functions, N), e;
	struct unwind_image *u;
	struct object *o;

	for (size_t i = 0; i + 6 <= t.n; i++)
		if (!memcmp(t.p + i, functions[0].depths, 6))
			memset(t.p + i, 0x80, 6);
	e = go_make_elf(t.p, t.n, GO_FIXED, 0);
	assert_null(object_open_memory("made", e.p, e.n, &o));
	assert_null(unwind_image_build(o, &u));
	check_rule(u, "main.main", 0, "none");
	check_rule(u, "main.(*T).Leaf", 0, "CFA=rsp+8");
	unwind_image_free(u);
	object_free(o);
	free(e.p);
	free(t.p);
}

/* Every prefix of a table, and functions outside the text. */
static void test_truncated(void **state)
{
	static const uint32_t magics[] = { GO_1_2, GO_1_16, GO_1_20 };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		struct go_making t = go_make_table(magics[i], GO_TEXT, functions, N);

		for (size_t n = 0; n < t.n; n++) {
			struct go_making e = go_make_elf(t.p, n, GO_FIXED, 0);
			struct go_table read;
			struct object *o;

			assert_null(object_open_memory("made", e.p, e.n, &o));
			if (go_table_read(o, &read)) {
				assert_true(read.functions.n <= N);
				go_table_fini(&read);
			}
			object_free(o);
			free(e.p);
		}
		free(t.p);
	}
}

static void test_outside(void **state)
{
	struct object *o = open_made(GO_1_18, GO_TEXT + GO_TEXT_SIZE - 80, GO_FIXED, 0);
	struct go_table t;

	assert_true(go_table_read(o, &t));
	assert_int_equal(t.functions.n, 1);
	go_table_fini(&t);
	object_free(o);
	o = open_made(GO_1_18, GO_TEXT + GO_TEXT_SIZE, GO_FIXED, 0);
	assert_false(go_table_read(o, &t));
	object_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),   cmocka_unit_test(test_text_start),
		cmocka_unit_test(test_depths),    cmocka_unit_test(test_rules),
		cmocka_unit_test(test_hostile),   cmocka_unit_test(test_system_linker),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
