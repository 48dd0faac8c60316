/* The functions that `descry calls` finds (src/calls/find.c). */
#include "unit.h"

#include "calls/find_private.h"

/* Libraries that are not loaded need others, which are looked for in the process's folders: each
 * name once, and not any number of names. */
static void test_needed(void **state)
{
	struct finder f = { 0 };
	uint32_t searches = 0;
	char name[32];

	for (int round = 0; round < 3; round++)
		for (uint32_t i = 0; i < FIND_SEARCHES_MAX; i++) {
			snprintf(name, sizeof(name), "lib%u.so", i);
			searches += find_may_search(&f, name);
		}
	assert_int_equal(searches, FIND_SEARCHES_MAX);
	assert_false(f.cut);
	assert_false(find_may_search(&f, "libmore.so"));
	assert_true(f.cut);
	assert_false(find_may_search(&f, "libmore.so"));
	assert_int_equal(f.searched.n, FIND_SEARCHES_MAX);
	hash_fini(&f.searched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
