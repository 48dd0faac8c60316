/* Folded text of trees whose names are many times the tree: its size is known before it is written,
 * and has a limit. */
#include "unit.h"

#include <errno.h>

#include "render/folded.h"
#include "render/writers.h"

static char *folded(const struct stacktree *t, uint32_t name_most)
{
	struct out o;

	out_init(&o, NULL);
	folded_write(t, name_most, &o);
	out_char(&o, '\0');
	return o.v;
}

/* Makes leaves below a chain of `depth` functions with names of `length` bytes. */
static void make_chain(struct stacktree *t, uint32_t depth, uint32_t length, uint32_t leaves)
{
	cleanup_free char *name = xmalloc(length);
	uint32_t node = STACKTREE_ROOT;

	stacktree_init(t);
	memset(name, 'n', length);
	for (uint32_t i = 0; i < depth; i++)
		node = stacktree_child(t, node, stacktree_frame(t, FRAME_NATIVE, name, length));
	for (uint32_t i = 0; i < leaves; i++) {
		const uint32_t frame = stacktree_frame(t, FRAME_JIT, (const char *)&i, sizeof(i));

		stacktree_count(t, stacktree_child(t, node, frame), 1);
	}
	stacktree_finish(t);
}

static void sizes_and_cut_names(void **state)
{
	static const char text[] = "main;r\xc3\xa9sum\xc3\xa9_of_all;a_[j]";
	cleanup_free char *whole = NULL, *cut = NULL, *half = NULL;
	struct stacktree t;

	stacktree_init(&t);
	stacktree_add_text(&t, text, strlen(text), 7);
	stacktree_add_text(&t, "main", 4, 2);
	stacktree_finish(&t);
	whole = folded(&t, FOLDED_WHOLE);
	assert_string_equal(whole, "main 2\nmain;r\xc3\xa9sum\xc3\xa9_of_all;a_[j] 7\n");
	/* without the counts and the spaces before them */
	assert_int_equal(folded_size(&t, FOLDED_WHOLE), strlen(whole) - strlen(" 2 7"));
	cut = folded(&t, 4);
	assert_string_equal(cut, "main 2\nmain;r\xc3\xa9s..;a_[j] 7\n");
	assert_int_equal(folded_size(&t, 4), strlen(cut) - strlen(" 2 7"));
	half = folded(&t, 2);
	assert_string_equal(half, "ma.. 2\nma..;r..;a_[j] 7\n");
	assert_int_equal(folded_size(&t, 2), strlen(half) - strlen(" 2 7"));
	stacktree_fini(&t);
}

static void names_fit(void **state)
{
	struct stacktree t;

	make_chain(&t, 10, 1000, 100); /* a million bytes */
	assert_int_equal(folded_name_most(&t, 2000000), FOLDED_WHOLE);
	assert_int_equal(folded_name_most(&t, 900000), 512);
	assert_int_equal(folded_name_most(&t, 100000), 64);
	assert_int_equal(folded_name_most(&t, 40000), 32);
	assert_int_equal(folded_name_most(&t, 10000), 0);
	stacktree_fini(&t);
}

/* A process chooses the names of its functions, and how they call each other. */
static void output_has_a_budget(void **state)
{
	const struct stack_writer *w = stack_writer_named("folded");
	struct stack_output output = { 0 };
	char *remark = NULL;
	struct stacktree t;
	struct err *e;

	output.tree = &t;
	make_chain(&t, 1000, 100, 1000); /* 100 MB */
	assert_null(stack_output_fit(w, &output, &remark));
	assert_null(remark);
	assert_int_equal(output.name_most, FOLDED_WHOLE);
	stacktree_fini(&t);

	make_chain(&t, 1000, 4000, 1000); /* 4 GB */
	assert_null(stack_output_fit(w, &output, &remark));
	assert_int_equal(output.name_most, 1024);
	assert_non_null(strstr(remark, "names are cut after 1024 bytes"));
	free(remark);
	/* stacks of an input of 8 MB */
	output.given = 8 << 20;
	assert_null(stack_output_fit(w, &output, &remark));
	assert_int_equal(output.name_most, FOLDED_WHOLE);
	assert_null(remark);
	output.given = 0;
	stacktree_fini(&t);

	make_chain(&t, 1000, 100, 100000); /* 10 GB */
	e = stack_output_fit(w, &output, &remark);
	assert_non_null(e);
	assert_int_equal(e->code, E2BIG);
	assert_null(remark);
	err_free(e);
	/* a picture has each function once */
	assert_null(stack_output_fit(stack_writer_named("svg"), &output, &remark));
	assert_null(remark);
	stacktree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_cut_names),
		cmocka_unit_test(names_fit),
		cmocka_unit_test(output_has_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
