/* Heat maps: ranks, colours, labels, and readers fed in pieces of any size. */
#include "unit.h"

#include "input/heatin/heatin.h"
#include "render/picture_heat.h"

static const uint64_t SECOND = 1000000000;

static void counts(struct matrix *m, const uint32_t *n, uint32_t cells)
{
	struct matrix_axis axis = { .kind = MATRIX_DECADES };

	matrix_init(m, SECOND, &axis);
	for (uint32_t i = 0; i < cells; i++)
		for (uint32_t k = 0; k < n[i]; k++)
			matrix_event(m, i * SECOND, 1,
				     matrix_party(m, matrix_series(m, "a", 1), "", 0));
}

/* A rank is the part of the cells that have no more; ties share the highest. */
static void test_levels(void **state)
{
	static const uint32_t n[] = { 5, 1, 5, 2, 400, 1, 1, 1, 1, 1 };
	static const uint8_t ranks[] = { 230, 153, 230, 179, 255, 153, 153, 153, 153, 153 };
	struct matrix m;
	struct matrix_view v;

	counts(&m, n, ARRAY_SIZE(n));
	assert_null(matrix_view_make(&m, NULL, &v));
	for (int scale = 0; scale < HEAT_NSCALES; scale++) {
		cleanup_free uint8_t *levels = heat_levels(&v, (enum heat_scale)scale);

		for (uint32_t i = 0; i < ARRAY_SIZE(n); i++) {
			assert_true(levels[i] >= 1);
			if (scale == HEAT_RANK)
				assert_int_equal(levels[i], ranks[i]);
			for (uint32_t k = 0; k < ARRAY_SIZE(n); k++) /* more is never paler */
				assert_true(n[i] != n[k] || levels[i] == levels[k]);
			for (uint32_t k = 0; k < ARRAY_SIZE(n); k++)
				assert_true(n[i] <= n[k] || levels[i] >= levels[k]);
		}
		assert_int_equal(levels[4], 255);
		if (scale == HEAT_LINEAR)
			assert_int_equal(levels[0], 3);
	}
	matrix_view_fini(&v);
	matrix_fini(&m);
}

static double luminance(uint32_t c)
{
	return 0.2126 * (c >> 16 & 255) + 0.7152 * (c >> 8 & 255) + 0.0722 * (c & 255);
}

/* A larger count is darker in each hue, so that everybody can see the depth. */
static void test_colors(void **state)
{
	for (uint32_t series = 0; series <= HEAT_HUES; series++)
		for (uint32_t n = 1; n < 9; n += 7)
			for (uint32_t level = 1; level < HEAT_LEVELS; level++)
				assert_true(luminance(heat_color(series, n, level)) <=
					    luminance(heat_color(series, n, level - 1)) + 0.6);
	for (uint32_t a = 0; a <= HEAT_HUES; a++)
		for (uint32_t b = 0; b < a; b++)
			assert_int_not_equal(heat_color(a, 8, 170), heat_color(b, 8, 170));
	assert_int_equal(heat_color(HEAT_HUES + 5, 40, 99), heat_color(HEAT_HUES, 40, 99));
}

static void value_is(int64_t v, const char *unit, const char *want)
{
	struct out o = { 0 };

	heat_value(&o, v, unit);
	out_char(&o, '\0');
	assert_string_equal(o.v, want);
	out_fini(&o);
}

static void test_values(void **state)
{
	value_is(0, "ns", "0ns");
	value_is(999, "ns", "999ns");
	value_is(1500, "ns", "1.5us");
	value_is(1048576, "ns", "1.049ms");
	value_is(-2000000000, "ns", "-2s");
	value_is(65536, "bytes", "64KB");
	value_is(1500, NULL, "1.5k");
	value_is(12, "%", "12%");
	value_is(3000, "widgets", "3k widgets");
	value_is(INT64_MIN, "", "-9223372.037T");
	value_is(INT64_MAX, "s", "9223372036854775807s");
}

static char *json_of(const char *text, size_t piece, const struct heatin_options *o)
{
	struct heat_options picture = { .mode = "latency" };
	struct out out = { 0 };
	struct matrix_view v;
	struct heatin in;
	size_t n = strlen(text);

	heatin_init(&in, o);
	for (size_t at = 0; at < n; at += piece)
		heatin_feed(&in, text + at, n - at < piece ? n - at : piece);
	heatin_end(&in);
	assert_true(in.made);
	assert_null(matrix_view_make(&in.matrix, NULL, &v));
	heat_json(&v, &picture, &out);
	out_printf(&out, "skipped %llu of %llu, first %llu", (unsigned long long)in.skipped,
		   (unsigned long long)in.lines, (unsigned long long)in.first_skipped);
	out_char(&out, '\0');
	matrix_view_fini(&v);
	heatin_fini(&in);
	return out.v;
}

static void test_pieces(void **state)
{
	static const char *const texts[] = {
		"100.25 1500 cp\n100.5 90 dd\nwhat\n101.0 2000000 cp -r x\n101.75 -5 cp\n102. 3 cp\n102.1234567891 4 a longer name",
		"\n   928  sh   7\n  value  ------------- Distribution ------------- count\n  1 |  0\n  2 |@@ 3\n 4 | 0\n\n  929  sh 8\n"
		"  value  ------------- Distribution ------------- count\n  < 0 |@ 1\n 0 |@@ 3\n 2 | 0\n",
		"{\"type\":\"aggregation\",\"name\":\"\",\"keys\":[1,\"a\"],\"distribution\":[{\"min\":1,\"max\":1,\"count\":3}]}\n{}\n",
	};
	struct heatin_options o = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_free char *whole = json_of(texts[i], strlen(texts[i]), &o);

		for (size_t piece = 1; piece < strlen(texts[i]); piece++) {
			cleanup_free char *is = json_of(texts[i], piece, &o);

			assert_string_equal(is, whole);
		}
	}
}

/* More text than recognising the format reads, so that the text passes in blocks, with numbers at
 * the end of one. */
static void test_blocks(void **state)
{
	struct heatin_options o = { 0 };
	struct out text = { 0 };
	cleanup_free char *whole = NULL, *blocks = NULL;

	for (int i = 0; i < 20000; i++)
		out_printf(&text, "%d.%d %d s%d\n", 1000 + i / 1000, i, i * 7919 % 100003, i % 20);
	out_char(&text, '\0');
	whole = json_of(text.v, text.n, &o);
	blocks = json_of(text.v, 70001, &o);
	assert_string_equal(whole, blocks);
	assert_non_null(strstr(whole, "\"total\":20000,"));
	out_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels), cmocka_unit_test(test_colors),
		cmocka_unit_test(test_values), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
