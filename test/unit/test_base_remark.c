/* Remarks are taken once, and no more than REMARKS_MAX of them. */
#include "base/remark.h"
#include "unit.h"

static void test_once(void **state)
{
	struct remarks r = { 0 };

	(void)state;
	assert_true(remarks_take(&r, "a"));
	assert_false(remarks_take(&r, "a"));
	assert_true(remarks_take(&r, "b"));
	assert_int_equal(r.left_out, 0);
	remarks_fini(&r);
	assert_true(remarks_take(&r, "a"));
	remarks_fini(&r);
}

static void test_limit(void **state)
{
	struct remarks r = { 0 };
	char text[32];

	(void)state;
	for (int i = 0; i < REMARKS_MAX + 10; i++) {
		snprintf(text, sizeof(text), "remark %d", i);
		assert_int_equal(remarks_take(&r, text), i < REMARKS_MAX);
	}
	assert_int_equal(r.left_out, 10);
	assert_int_equal(r.texts.n, REMARKS_MAX);
	/* one that was taken is not left out */
	assert_false(remarks_take(&r, "remark 3"));
	assert_int_equal(r.left_out, 10);
	remarks_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
