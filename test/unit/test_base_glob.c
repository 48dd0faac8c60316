#include "unit.h"

#include "base/glob.h"

static void test_match(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool want;
	} t[] = {
		{ "", "anything", true },
		{ "", "", true },
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "ab", "a", false },
		{ "*", "", true },
		{ "*", "abc", true },
		{ "a*c", "abbbc", true },
		{ "a*c", "abbbd", false },
		{ "a*b*c", "a-b-b-c", true },
		{ "*ab", "aab", true },
		{ "?", "", false },
		{ "?", "x", true },
		{ "a?c", "abc", true },
		{ "[abc]x", "bx", true },
		{ "[abc]x", "dx", false },
		{ "[a-c]", "b", true },
		{ "[a-c]", "-", false },
		{ "[!a-c]", "d", true },
		{ "[!a-c]", "b", false },
		{ "[]]", "]", true },
		{ "[a", "a", false },
		{ "[a-]", "-", true },
		{ "\\*", "*", true },
		{ "\\*", "x", false },
		{ "a\\", "a\\", true },
		{ "[\\]]", "]", true },
		{ "*[0-9]", "read64", true },
		{ "sys_*[!64]", "sys_read", true },
		{ "**a**", "bab", true },
		{ "*?*?*", "x", false },
		{ "*?*?*", "xy", true },
		{ "a*", "", false },
		{ "[", "[", false },
		{ "*[", "a", false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		if (glob_match(t[i].pattern, t[i].text) != t[i].want)
			fail_msg("'%s' on '%s'", t[i].pattern, t[i].text);
	}
}

/* Backtracking into one star only: this ends at once. */
static void test_no_blowup(void **state)
{
	char text[5000];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_is_pattern(void **state)
{
	assert_true(glob_is_pattern("a*"));
	assert_true(glob_is_pattern("a?"));
	assert_true(glob_is_pattern("[a]"));
	assert_false(glob_is_pattern("a\\*"));
	assert_false(glob_is_pattern(""));
	assert_true(glob_is_pattern("\\**"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_no_blowup),
		cmocka_unit_test(test_is_pattern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
