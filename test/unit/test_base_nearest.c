#include "unit.h"

#include "base/nearest.h"

static void test_distance(void **state)
{
	assert_int_equal(edit_distance("abc", "abc", 3), 0);
	assert_int_equal(edit_distance("abc", "abd", 3), 1);
	assert_int_equal(edit_distance("abc", "ab", 3), 1);
	assert_int_equal(edit_distance("abc", "abcd", 3), 1);
	assert_int_equal(edit_distance("abcd", "abdc", 3), 1);
	assert_int_equal(edit_distance("kitten", "sitting", 5), 3);
	assert_int_equal(edit_distance("abc", "xyz", 1), 2);
	assert_int_equal(edit_distance("", "ab", 5), 2);
}

static void test_nearest(void **state)
{
	static const char *const words[] = { "print", "printf", "printa", "trace" };
	struct nearest n = { .word = "prinft" }, far = { .word = "nosuchword" },
		       same = { .word = "trace" };

	for (int i = 0; i < 4; i++) {
		nearest_offer(&n, words[i]);
		nearest_offer(&far, words[i]);
		nearest_offer(&same, words[i]);
	}
	assert_string_equal(n.name, "printf");
	assert_null(far.name);
	assert_null(same.name);
}

static void test_long(void **state)
{
	char a[200], b[200];

	memset(a, 'a', sizeof(a));
	a[199] = '\0';
	memcpy(b, a, sizeof(a));
	b[5] = 'b';
	assert_int_equal(edit_distance(a, b, 3), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
