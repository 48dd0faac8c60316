/* Formats parsed, and the arithmetic of aggregations. */
#include "unit.h"

#include <sys/resource.h>

#include "data/format.h"
#include "view/rows.h"

static struct arena a;

static int setup(void **state)
{
	arena_init(&a);
	return 0;
}

static int teardown(void **state)
{
	arena_fini(&a);
	return 0;
}

static const struct format *parse(const char *text)
{
	struct format *f;
	const char *error = NULL;
	uint32_t pos;

	if (!format_parse(&a, text, &f, &error, &pos))
		fail_msg("%s: %s", text, error);
	return f;
}

static void check_error(const char *text, uint32_t at, const char *message)
{
	struct format *f;
	const char *error = "";
	uint32_t pos = 999;

	assert_false(format_parse(&a, text, &f, &error, &pos));
	assert_non_null(strstr(error, message));
	assert_int_equal(pos, at);
}

static void test_pieces(void **state)
{
	const struct format *f = parse("a%%b %-08.3lld|%@u%%\n");

	assert_int_equal(f->n, 5);
	assert_string_equal(f->convs[0].text, "a%b ");
	assert_int_equal(f->convs[0].len, 4);
	assert_int_equal(f->convs[1].kind, CONV_SIGNED);
	assert_int_equal(f->convs[1].flags, CONV_LEFT | CONV_HAS_PREC); /* - beats 0 */
	assert_int_equal(f->convs[1].width, 8);
	assert_int_equal(f->convs[1].prec, 3);
	assert_int_equal(f->convs[1].size, 8);
	assert_int_equal(f->convs[1].pos, 5);
	assert_string_equal(f->convs[2].text, "|");
	assert_int_equal(f->convs[3].flags, CONV_AGG);
	assert_string_equal(f->convs[4].text, "%\n");
	assert_int_equal(format_nargs(f), 1);
	assert_int_equal(parse("")->n, 0);
	assert_int_equal(format_nargs(parse("%*.*d %s")), 4);
	assert_int_equal(format_nargs(parse("%@*d %k")), 2);
}

static void test_letters(void **state)
{
	static const struct {
		const char *text;
		enum conv_kind kind;
		uint8_t size;
	} cases[] = {
		{ "%d", CONV_SIGNED, 0 },     { "%hi", CONV_SIGNED, 2 },
		{ "%hhu", CONV_UNSIGNED, 1 }, { "%lx", CONV_UNSIGNED, 8 },
		{ "%llX", CONV_UNSIGNED, 8 }, { "%o", CONV_UNSIGNED, 0 },
		{ "%c", CONV_CHAR, 0 },       { "%wc", CONV_CHAR, 4 },
		{ "%lc", CONV_CHAR, 4 },      { "%C", CONV_ESC_CHAR, 0 },
		{ "%s", CONV_STRING, 0 },     { "%ls", CONV_STRING, 4 },
		{ "%ws", CONV_STRING, 4 },    { "%S", CONV_ESC_STRING, 0 },
		{ "%p", CONV_POINTER, 0 },    { "%?p", CONV_POINTER, 0 },
		{ "%a", CONV_KADDR, 0 },      { "%A", CONV_UADDR, 0 },
		{ "%k", CONV_STACK, 0 },      { "%T", CONV_TIME, 0 },
		{ "%Y", CONV_DATE, 0 },       { "%e", CONV_FLOAT, 0 },
		{ "%Lg", CONV_FLOAT, 16 },    { "%G", CONV_FLOAT, 0 },
		{ "%P", CONV_PORT, 0 },       { "%I", CONV_INET, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct format *f = parse(cases[i].text);

		assert_int_equal(f->n, 1);
		assert_int_equal(f->convs[0].kind, cases[i].kind);
		assert_int_equal(f->convs[0].size, cases[i].size);
	}
	assert_int_equal(parse("%?p")->convs[0].width, 16);
}

static void test_errors(void **state)
{
	check_error("ab %", 3, "name expected before end");
	check_error("%5", 0, "name expected before end");
	check_error("%5%", 0, "cannot be combined");
	check_error("x%z", 1, "end of format");
	check_error("%1$d", 0, "positional");
	check_error("%**d", 0, "more than one '*'");
	check_error("%.1.2d", 0, "more than one '.'");
	check_error("%hs", 0, "undefined: %hs");
	check_error("%n", 0, "undefined: %n");
	assert_int_equal(parse("%99999999999d")->convs[0].width, INT32_MAX);
}

static void test_quantize(void **state)
{
	assert_int_equal(agg_quantize_bucket(0), 63);
	assert_int_equal(agg_quantize_bucket(1), 64);
	assert_int_equal(agg_quantize_bucket(-1), 62);
	assert_int_equal(agg_quantize_bucket(INT64_MAX), 126);
	assert_int_equal(agg_quantize_bucket(INT64_MIN), 0);
	for (uint32_t i = 0; i < 127; i++)
		assert_int_equal(agg_quantize_bucket(agg_quantize_value(i)), i);
	assert_int_equal(agg_quantize_bucket(1023), agg_quantize_bucket(512));
	assert_int_equal(agg_quantize_bucket(-1023), agg_quantize_bucket(-512));
}

/* Every bucket's lower bound and the value before the next bucket's lie in it. */
static void check_ll(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps)
{
	uint32_t n = agg_ll_nbuckets(factor, low, high, steps);

	assert_int_equal(agg_ll_bucket(factor, low, high, steps, INT64_MIN), 0);
	assert_int_equal(agg_ll_bucket(factor, low, high, steps,
				       agg_ll_lower(factor, low, high, steps, 1) - 1),
			 0);
	for (uint32_t i = 1; i < n; i++) {
		int64_t lower = agg_ll_lower(factor, low, high, steps, i);

		assert_int_equal(agg_ll_bucket(factor, low, high, steps, lower), i);
		if (i > 1)
			assert_int_equal(agg_ll_bucket(factor, low, high, steps, lower - 1), i - 1);
	}
	assert_int_equal(agg_ll_bucket(factor, low, high, steps, INT64_MAX), n - 1);
}

static void test_llquantize(void **state)
{
	uint32_t mid = 1 + 9 + 6 * 18;

	assert_int_equal(agg_ll_middle(10, 0, 6, 20), mid);
	assert_int_equal(agg_ll_nbuckets(10, 0, 6, 20), 2 * mid + 1);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid), 0);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid + 1), 1);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid + 10), 10);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid + 11), 15);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, 2 * mid), 10000000);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid - 1), -1);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, mid - 10), -14);
	assert_int_equal(agg_ll_lower(10, 0, 6, 20, 1), -9999999);
	check_ll(10, 0, 6, 20);
	check_ll(10, 0, 6, 10);
	check_ll(10, 3, 9, 100);
	check_ll(10, 0, 5, 5);
	check_ll(4, 0, 1, 8);
	check_ll(4, 4, 6, 32);
	check_ll(2, 0, 62, 2);
	check_ll(2, 0, 1, 2);
	check_ll(3, 1, 4, 9);
	check_ll(10, 0, 18, 10);
}

static void test_values(void **state)
{
	struct agg agg = { .func = AGG_AVG, .nwords = 2 };
	int64_t avg[2] = { 3, -10 }, sd[4] = { 2, 30, 500, 0 }, big[4] = { 2, 0, 0, 1 };
	struct agg_view v = { .agg = &agg, .normal = 1 };

	assert_int_equal(agg_row_value(&v, &(struct agg_row){ .words = avg }), -3);
	avg[0] = 0;
	assert_int_equal(agg_row_value(&v, &(struct agg_row){ .words = avg }), 0);
	agg.func = AGG_STDDEV;
	assert_int_equal(agg_row_value(&v, &(struct agg_row){ .words = sd }), 5);
	assert_int_equal(agg_row_value(&v, &(struct agg_row){ .words = big }),
			 3037000499); /* sqrt(2^63) */
	v.normal = 5;
	assert_int_equal(agg_row_value(&v, &(struct agg_row){ .words = sd }), 1);
}

/* A traced process can write any words. None makes a division that ends the tracer. */
static void test_forged(void **state)
{
	static const int64_t numbers[] = { INT64_MIN, -2, -1, 0, 1, INT64_MAX };
	struct agg agg = { .nwords = 4 };
	struct agg_view v = { .agg = &agg };
	int64_t w[4] = { -1, INT64_MIN, 0, 0 };

	for (int f = AGG_COUNT; f < AGG_QUANTIZE; f++)
		for (size_t i = 0; i < ARRAY_SIZE(numbers) * ARRAY_SIZE(numbers); i++) {
			agg.func = (enum agg_func)f;
			w[0] = numbers[i % ARRAY_SIZE(numbers)];
			v.normal = numbers[i / ARRAY_SIZE(numbers)];
			(void)agg_row_value(&v, &(struct agg_row){ .words = w });
		}
	v.normal = -1;
	assert_int_equal(agg_normalized(&v, INT64_MIN), INT64_MIN);
	assert_int_equal(agg_normalized(&v, INT64_MAX), -INT64_MAX);
	v.normal = 0;
	assert_int_equal(agg_normalized(&v, 7), 7);
}

/* A format of nothing but %% takes memory of its length, not of its square. */
static void test_percents(void **state)
{
	const uint32_t n = 1 << 15;
	char *text = malloc(n * 2 + 1);
	struct rusage before, after;
	const struct format *f;

	memset(text, '%', n * 2);
	text[n * 2] = 0;
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	f = parse(text);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->convs[0].len, n);
	assert_int_equal(strspn(f->convs[0].text, "%"), n);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); /* kB */
	free(text);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_pieces),     T(test_letters), T(test_errors), T(test_quantize),
		T(test_llquantize), T(test_values),  T(test_forged), T(test_percents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
