/* The changes of an aggregation's rows between two looks. */
#include "unit.h"

#include "view/timeline.h"

static char text[256];

static void note(void *arg, uint32_t bucket, int64_t change)
{
	size_t n = strlen(text);

	snprintf(text + n, sizeof(text) - n, "%u:%lld ", bucket, (long long)change);
}

static const char *look(struct timeline *t, const struct agg *a, uint32_t row, const int64_t *words)
{
	struct agg_view v = { .agg = a };

	text[0] = '\0';
	timeline_changes(t, row, &v, &(struct agg_row){ .words = words }, note, NULL);
	return text;
}

static void test_rows(void **state)
{
	const struct agg a = { .func = AGG_COUNT, .nwords = 1, .nkeys = 1, .key_size = 2 };
	struct timeline t = { 0 };
	bool new;

	assert_int_equal(timeline_row(&t, &a, (const uint8_t *)"ab", 2, &new), 0);
	assert_true(new);
	assert_int_equal(timeline_row(&t, &a, (const uint8_t *)"cd", 2, &new), 1);
	assert_int_equal(timeline_row(&t, &a, (const uint8_t *)"ab", 2, &new), 0);
	assert_false(new);
	assert_int_equal(timeline_row(&t, &a, (const uint8_t *)"ef", 2, &new), TIMELINE_NONE);
	assert_false(new);
	timeline_fini(&t);
	assert_int_equal(timeline_row(&t, &a, (const uint8_t *)"ef", 2, &new), 0);
	assert_true(new);
	timeline_fini(&t);
}

static void test_changes(void **state)
{
	const struct agg count = { .func = AGG_COUNT, .nwords = 1 },
			 sum = { .func = AGG_SUM, .nwords = 2 },
			 max = { .func = AGG_MAX, .nwords = 2 },
			 quantize = { .func = AGG_QUANTIZE, .nwords = 4 };
	struct timeline t = { 0 };
	bool new;
	uint32_t row = timeline_row(&t, &quantize, NULL, 1, &new);

	assert_string_equal(look(&t, &count, row, (int64_t[]){ 5 }), "0:5 ");
	assert_string_equal(look(&t, &count, row, (int64_t[]){ 5 }), "");
	assert_string_equal(look(&t, &count, row, (int64_t[]){ 7 }), "0:2 ");
	assert_string_equal(look(&t, &count, row, (int64_t[]){ 3 }), "0:3 "); /* cleared */
	timeline_fini(&t);
	row = timeline_row(&t, &quantize, NULL, 1, &new);
	assert_string_equal(look(&t, &sum, row, (int64_t[]){ 1, -5 }), "0:-5 ");
	assert_string_equal(look(&t, &sum, row, (int64_t[]){ 2, 5 }), "0:10 ");
	timeline_fini(&t);
	row = timeline_row(&t, &quantize, NULL, 1, &new);
	assert_string_equal(look(&t, &max, row, (int64_t[]){ 1, 9 }), "0:9 ");
	assert_string_equal(look(&t, &max, row, (int64_t[]){ 2, 9 }), "0:9 ");
	assert_string_equal(look(&t, &max, row, (int64_t[]){ 2, 9 }), "");
	timeline_fini(&t);
	row = timeline_row(&t, &quantize, NULL, 1, &new);
	assert_string_equal(look(&t, &quantize, row, (int64_t[]){ 3, 1, 0, 2 }), "0:1 2:2 ");
	assert_string_equal(look(&t, &quantize, row, (int64_t[]){ 4, 1, 1, 2 }), "1:1 ");
	assert_string_equal(look(&t, &quantize, row, (int64_t[]){ 1, 0, 0, 1 }), "2:1 ");
	timeline_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
