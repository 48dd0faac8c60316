/* A stack tree as indented text: order, columns, omissions. */
#include "unit.h"

#include "render/stacksink.h"

static void add(struct stacktree *t, const char *stack, uint64_t count)
{
	stacktree_add_text(t, stack, strlen(stack), count);
}

static char *text_of(struct stacktree *t, double min)
{
	struct out o;

	stacktree_finish(t);
	out_init(&o, NULL);
	tree_write(t, min, &o);
	out_char(&o, 0);
	return o.v;
}

static void test_tree(void **state)
{
	struct stacktree t;

	stacktree_init(&t);
	add(&t, "sh;main;run;light", 10);
	add(&t, "sh;main;run;heavy;deep", 70);
	add(&t, "sh;main;run", 15);
	add(&t, "idle;[stack ends: x]", 5);
	cleanup_free char *all = text_of(&t, 0);
	assert_string_equal(all, "  total    self   count  frame\n"
				 "  95.0%              95  sh\n"
				 "  95.0%              95    main\n"
				 "  95.0%   15.0%      95    run\n"
				 "  70.0%              70    - heavy\n"
				 "  70.0%   70.0%      70      deep\n"
				 "  10.0%   10.0%      10    - light\n"
				 "   5.0%               5  idle\n"
				 "   5.0%    5.0%       5    [stack ends: x]\n");
	cleanup_free char *some = text_of(&t, 20);
	assert_string_equal(some, "  total    self   count  frame\n"
				  "  95.0%              95  sh\n"
				  "  95.0%              95    main\n"
				  "  95.0%   15.0%      95    run\n"
				  "  70.0%              70    heavy\n"
				  "  70.0%   70.0%      70    deep\n"
				  "3 frames of less than 20% are not shown (15 samples)\n");
	stacktree_fini(&t);
}

static void test_empty(void **state)
{
	struct stacktree t;

	stacktree_init(&t);
	cleanup_free char *none = text_of(&t, 1);
	assert_string_equal(none, "");
	stacktree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
