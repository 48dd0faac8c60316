/* The ticks of a live page: the data of a reader from the beginning, of a late one, and after a new
 * run. */
#include "unit.h"

#include "serve/live_private.h"

static char *next(struct live *l, struct live_reader *r)
{
	struct out o = { 0 };

	if (!live_next(l, r, &o)) {
		out_fini(&o);
		return NULL;
	}
	out_char(&o, '\0');
	return o.v;
}

static void expect(struct live *l, struct live_reader *r, const char *part)
{
	cleanup_free char *s = next(l, r);

	assert_non_null(s);
	if (!strstr(s, part))
		fail_msg("no %s in %s", part, s);
	assert_null(strchr(s, '\n')); /* an event is one line */
}

static uint32_t told;

static void tell(void *arg)
{
	told++;
}

static void test_ticks(void **state)
{
	struct live_options o = { .history = 3, .host = "h\"<script>" };
	struct live *l = live_new(&o);
	struct live_reader a = { 0 }, late = { 0 };

	live_on_tick(l, tell, NULL);
	assert_null(next(l, &a)); /* nothing yet */
	live_begin(l, "BEGIN\n{ \"\\\" }");
	assert_int_equal(told, 1);
	expect(l, &a,
	       "\"type\":\"hello\",\"ms\":1000,\"history\":3,\"allowD\":false,\"allowHeap\":false,\"running\":true,\"status\":0,\"program\":\"BEGIN\\n{");
	assert_null(next(l, &a));
	live_line(l, "one\ttab", 7, false);
	live_line(l, "\xff\x01</script>\"", 12, true);
	live_line(l, "\n", 1, true); /* an empty line is none */
	live_end(l, 3);
	assert_int_equal(told, 2);
	expect(l, &a,
	       "\"running\":false,\"status\":3,\"lines\":[[0,\"one     tab\"],[1,\"\\\\xff\\\\x01");
	assert_null(next(l, &a));
	for (int i = 1; i < 6; i++)
		live_end(l, i);
	expect(l, &late, "\"type\":\"hello\"");
	expect(l, &late, "\"tick\":3"); /* 0 to 2 are forgotten */
	expect(l, &late, "\"tick\":4");
	expect(l, &late, "\"tick\":5");
	assert_null(next(l, &late));
	/* too slow: lost ticks are left out, and their number shows this */
	expect(l, &a, "\"tick\":3");
	live_begin(l, "again");
	expect(l, &a, "\"program\":\"again\"");
	expect(l, &late, "\"type\":\"hello\"");
	live_end(l, 0);
	expect(l, &a, "\"tick\":0");
	live_free(l);
}

static void test_limits(void **state)
{
	struct live_options o = { 0 };
	struct live *l = live_new(&o);
	struct live_reader r = { 0 };

	live_begin(l, "");
	for (int i = 0; i < 2100; i++)
		live_line(l, "x", 1, false);
	live_end(l, 0);
	expect(l, &r, "hello");
	expect(l, &r, "\"linesDropped\":100");
	live_free(l);
}

/* Ticks of many bytes are kept for a shorter time. */
static void test_bytes(void **state)
{
	struct live_options o = { .history = 10, .bytes = 2000 };
	struct live *l = live_new(&o);
	struct live_reader r = { 0 }, late = { 0 };
	char line[900];

	(void)state;
	memset(line, 'x', sizeof(line));
	live_begin(l, "");
	for (int i = 0; i < 25; i++) {
		live_line(l, line, sizeof(line), false);
		live_end(l, 0);
		if (!i)
			expect(l, &r, "hello");
	}
	expect(l, &late, "hello");
	expect(l, &late, "\"tick\":23");
	expect(l, &late, "\"tick\":24");
	assert_null(next(l, &late));
	expect(l, &r, "\"tick\":23");
	for (int i = 0; i < 20; i++)
		live_end(l, 0);
	expect(l, &r, "\"tick\":35");
	live_free(l);
}

/* A late reader gets the names in pieces, before the ticks. */
static void test_pieces(void **state)
{
	enum { NAMES = 5000, BYTES = 1000 };
	struct live_options o = { 0 };
	struct live *l = live_new(&o);
	struct live_reader r = { 0 };
	uint32_t texts = 0, names = 0;
	char name[BYTES + 3], *s;

	(void)state;
	live_begin(l, "");
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "\"%0*u\"", BYTES, i);
		vec_push(&l->frames, xstrdup(name));
	}
	live_end(l, 0);
	while ((s = next(l, &r)) && !strstr(s, "\"tick\":")) {
		char want[64];

		assert_non_null(strstr(s, texts ? "{\"type\":\"names\"" : "{\"type\":\"hello\""));
		assert_true(strlen(s) < LIVE_PIECE + 2 * BYTES);
		snprintf(want, sizeof(want), "\"frames\":[%u,[\"", names);
		assert_non_null(strstr(s, want));
		for (const char *p = s; (p = strstr(p, "\"00")); p++)
			names++;
		texts++;
		free(s);
	}
	assert_non_null(s);
	free(s);
	assert_int_equal(names, NAMES);
	assert_int_equal(texts, 5);
	assert_null(next(l, &r));
	live_free(l);
}

/* Keys and values beyond a number of bytes are counted. */
static void check_names(uint32_t nwords, uint64_t bytes)
{
	enum { ROWS = 100, WORDS = 65 };
	struct live_options o = { .names = 1000 };
	struct live *l = live_new(&o);
	struct field field = { .kind = FIELD_INT, .size = 8, .type = T_INT64 };
	const struct agg agg = { .name = "a",
				 .func = nwords > 1 ? AGG_LQUANTIZE : AGG_COUNT,
				 .step = 1,
				 .base = 0,
				 .type = T_UINT64,
				 .keys = &field,
				 .nkeys = 1,
				 .key_size = 8,
				 .nwords = nwords };
	struct live_reader r = { 0 };
	struct sink *s = live_sink(l);
	struct agg_row rows[ROWS] = { 0 };
	const int64_t words[WORDS] = { 1, 1 };
	int64_t keys[ROWS];

	for (int i = 0; i < ROWS; i++) {
		keys[i] = i;
		rows[i] = (struct agg_row){ .key = (const uint8_t *)&keys[i], .words = words };
	}
	live_begin(l, "");
	live_take_rows(l, s,
		       &(struct agg_view){ .agg = &agg, .rows = rows, .nrows = ROWS, .normal = 1 });
	live_end(l, 0);
	assert_in_range(l->name_bytes, 1000, bytes);
	expect(l, &r, "hello");
	expect(l, &r, "\"dropped\":");
	s->ops->free(s);
	live_free(l);
}

static void test_names(void **state)
{
	(void)state;
	check_names(1, 1100);
	check_names(65, 1000 + 65 * 8 + 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ticks), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
