/* The time x value matrix: every event is in one cell, the cell whose bounds hold it, in any order
 * of events. */
#include "unit.h"

#include "view/matrix.h"

static const uint64_t SECOND = 1000000000;

static struct matrix m;
static struct matrix_view v;

static void begin(enum matrix_axis_kind kind)
{
	struct matrix_axis axis = { .kind = kind };

	matrix_init(&m, SECOND, &axis);
}

static uint32_t party(const char *series, const char *who)
{
	return matrix_party(&m, matrix_series(&m, series, strlen(series)), who, strlen(who));
}

static void view(const struct matrix_filter *f)
{
	struct err *e = matrix_view_make(&m, f, &v);

	if (e)
		fail_msg("%s", e->text);
}

static void end(void)
{
	matrix_view_fini(&v);
	matrix_fini(&m);
}

/* Rows without gaps or overlaps, counts that add up, entries in order. */
static void check_view(uint64_t total)
{
	uint64_t sum = 0, series = 0, parties = 0;

	for (uint32_t i = 0; i < v.rows.n; i++) {
		assert_true(v.rows.v[i].min <= v.rows.v[i].max);
		if (i)
			assert_true(v.rows.v[i].min == v.rows.v[i - 1].max + 1);
	}
	for (uint32_t i = 0; i < v.cells.n; i++) {
		const struct matrix_cell *c = &v.cells.v[i];
		uint64_t inside = 0;

		assert_true(c->column < v.ncolumns && c->row < v.rows.n && c->n > 0 &&
			    c->series < v.series.n);
		if (i)
			assert_true(c[-1].column < c->column ||
				    (c[-1].column == c->column && c[-1].row < c->row));
		for (uint32_t k = 0; k < c->n; k++) {
			inside += v.entries.v[c->at + k].count;
			assert_true(!k || v.entries.v[c->at + k].count <=
						  v.entries.v[c->at + k - 1].count);
			for (uint32_t j = 0; j < k; j++)
				assert_int_not_equal(v.entries.v[c->at + k].party,
						     v.entries.v[c->at + j].party);
		}
		assert_true(inside == c->count);
		assert_true(c->count <= v.max);
		sum += c->count;
	}
	for (uint32_t i = 0; i < v.series.n; i++)
		series += v.series.v[i].count;
	for (uint32_t i = 0; i < v.parties.n; i++)
		parties += v.parties.v[i].count;
	assert_true(sum == total && v.total == total && series == total && parties == total);
}

static uint64_t count_at(uint64_t second, int64_t value)
{
	for (uint32_t i = 0; i < v.cells.n; i++) {
		const struct matrix_cell *c = &v.cells.v[i];
		struct matrix_row r = v.rows.v[c->row];

		if (v.first + c->column == second && value >= r.min && value <= r.max)
			return c->count;
	}
	return 0;
}

static uint64_t random64(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state ^ *state >> 29;
}

/* Values of every size, one of each in a second of its own: the row that has it must hold it. */
static void one_of_each(enum matrix_axis_kind kind)
{
	VEC(int64_t) values = { 0 };
	uint64_t state = 7;

	begin(kind);
	for (int bit = 0; bit < 63; bit++)
		for (int64_t d = -2; d <= 2; d++)
			vec_push(&values, ((int64_t)1 << bit) + d);
	for (int64_t ten = 1; ten <= INT64_MAX / 10; ten *= 10)
		for (int64_t k = 1; k < 10; k++)
			vec_push(&values, ten * k - (k & 1));
	for (int i = 0; i < 2000; i++)
		vec_push(&values, (int64_t)(random64(&state) >> (1 + i % 62)));
	vec_push(&values, INT64_MAX);
	vec_push(&values, INT64_MIN);
	vec_push(&values, 0);
	for (uint32_t i = 0; i < values.n; i++)
		matrix_event(&m, (i * 37 % values.n) * SECOND, values.v[i], party("a", ""));
	view(NULL);
	check_view(values.n);
	for (uint32_t i = 0; i < values.n; i++)
		assert_true(count_at(i * 37 % values.n, values.v[i]) == 1);
	vec_fini(&values);
	end();
}

static void test_decades(void **state)
{
	one_of_each(MATRIX_DECADES);
	begin(MATRIX_DECADES);
	for (int64_t i = 0; i < 100; i++)
		matrix_event(&m, 0, i, party("a", ""));
	view(NULL);
	check_view(100);
	assert_int_equal(v.rows.n, 18); /* 0 1 2 3 4 5 6 8 10 12 15 20 25 30 40 50 60 80 */
	assert_int_equal(v.rows.v[17].min, 80);
	assert_int_equal(v.rows.v[17].max, 99);
	assert_int_equal(count_at(0, 7), 2);
	end();
}

static void test_linear(void **state)
{
	one_of_each(MATRIX_LINEAR);
	begin(MATRIX_LINEAR);
	for (int64_t i = 0; i < 5000; i++)
		matrix_event(&m, SECOND * 3, i, party("a", ""));
	view(NULL);
	check_view(5000);
	assert_int_equal(v.rows.n, 50);
	assert_int_equal(v.ncolumns, 1);
	assert_int_equal(v.first, 3);
	for (uint32_t i = 0; i < v.cells.n; i++)
		assert_int_equal(v.cells.v[i].count, 100);
	end();
}

static void test_fixed(void **state)
{
	struct matrix_axis axis = {
		.kind = MATRIX_FIXED, .base = 0, .limit = 100, .step = 30, .whole = true
	};

	matrix_init(&m, SECOND, &axis);
	matrix_event(&m, 0, 30, party("a", ""));
	matrix_event(&m, 0, 99, party("a", ""));
	view(NULL);
	check_view(2);
	assert_int_equal(v.rows.n, 5); /* 0 30 60 90 and 100 and more */
	assert_int_equal(v.rows.v[3].max, 99);
	assert_true(v.rows.v[4].min == 100 && v.rows.v[4].max == INT64_MAX);
	matrix_view_fini(&v);
	matrix_event(&m, 0, -1, party("a", ""));
	matrix_event(&m, 0, 100, party("a", ""));
	view(NULL);
	check_view(4);
	assert_int_equal(v.rows.n, 6);
	assert_true(v.rows.v[0].min == INT64_MIN);
	end();
}

/* The order of events changes nothing, and an event belongs to one second, however late it
 * comes. */
static void test_order(void **state)
{
	uint64_t seed = 3;
	VEC(uint64_t) times = { 0 };
	struct matrix_view first;

	for (int i = 0; i < 5000; i++)
		vec_push(&times, 100 * SECOND + random64(&seed) % (20 * SECOND));
	vec_push(&times, 105 * SECOND);
	vec_push(&times, 105 * SECOND - 1);
	for (int way = 0; way < 2; way++) {
		begin(MATRIX_LINEAR);
		for (uint32_t i = 0; i < times.n; i++) {
			uint64_t t = times.v[way ? times.n - 1 - i : i];

			matrix_event(&m, t, (int64_t)(t % SECOND),
				     party(t % 3 ? "a" : "b", t % 5 ? "" : "x"));
		}
		view(NULL);
		check_view(times.n);
		if (!way) {
			first = v;
			matrix_fini(&m);
		}
	}
	assert_int_equal(v.cells.n, first.cells.n);
	assert_int_equal(v.entries.n, first.entries.n);
	for (uint32_t i = 0; i < v.cells.n; i++)
		assert_memory_equal(&v.cells.v[i], &first.cells.v[i], sizeof(v.cells.v[i]));
	matrix_view_fini(&first);
	vec_fini(&times);
	end();
}

static void rows_are(const int64_t *bounds, uint32_t n)
{
	assert_int_equal(v.rows.n, n);
	for (uint32_t i = 0; i < n; i++)
		if (v.rows.v[i].min != bounds[i])
			fail_msg("row %u begins at %lld, not at %lld", i,
				 (long long)v.rows.v[i].min, (long long)bounds[i]);
}

/* Empty buckets between two others are those of the aggregating function. */
static void test_gaps(void **state)
{
	static const struct {
		struct matrix_row low, high;
		int64_t rows[16];
		uint32_t n;
	} cases[] = {
		{ { 4, 7 }, { 64, 127 }, { 4, 8, 16, 32, 64 }, 5 },
		{ { 20, 29 }, { 60, 69 }, { 20, 30, 40, 50, 60 }, 5 },
		{ { 90, 94 }, { 200, 249 }, { 90, 95, 100, 150, 200 }, 5 },
		{ { 7, 7 }, { 30, 39 }, { 7, 8, 9, 10, 20, 30 }, 6 },
		{ { INT64_MIN, -1 }, { 10, 19 }, { INT64_MIN, 0, 10 }, 3 },
		{ { 10, 19 }, { 40, INT64_MAX }, { 10, 20, 30, 40 }, 4 },
		{ { 3, 4 }, { 10, 16 }, { 3, 5, 10 }, 3 }, /* of no function: one row between */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(MATRIX_BUCKETS);
		matrix_bucket(&m, SECOND, cases[i].high.min, cases[i].high.max, party("a", ""), 2);
		matrix_bucket(&m, SECOND, cases[i].low.min, cases[i].low.max, party("a", ""), 3);
		view(NULL);
		check_view(5);
		rows_are(cases[i].rows, cases[i].n);
		end();
	}
}

static void test_overlap(void **state)
{
	struct err *e;

	begin(MATRIX_BUCKETS);
	matrix_bucket(&m, 0, 10, 19, party("a", ""), 1);
	matrix_bucket(&m, 0, 16, 31, party("a", ""), 1);
	e = matrix_view_make(&m, NULL, &v);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "overlap"));
	err_free(e);
	matrix_fini(&m);
	begin(MATRIX_DECADES);
	matrix_event(&m, 0, 1, party("a", ""));
	matrix_event(&m, UINT64_MAX, 1, party("a", ""));
	e = matrix_view_make(&m, NULL, &v);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "--step"));
	err_free(e);
	matrix_fini(&m);
}

static void test_filter(void **state)
{
	const char *only[] = { "b" }, *without[] = { "c" };
	struct matrix_filter f = { .only = only, .nonly = 1 },
			     g = { .without = without, .nwithout = 1 },
			     h = { .from = 2 * SECOND, .to = 3 * SECOND };

	begin(MATRIX_DECADES);
	for (uint64_t t = 1; t < 6; t++) {
		matrix_event(&m, t * SECOND, 5, party("a", "x"));
		matrix_event(&m, t * SECOND, 5, party("a", "y"));
		matrix_event(&m, t * SECOND, 50, party("b", ""));
		matrix_event(&m, t * SECOND, 5, party("c", "x"));
	}
	view(NULL);
	check_view(20);
	assert_int_equal(v.series.n, 3);
	assert_int_equal(v.parties.n, 4);
	assert_int_equal(count_at(2, 5), 3);
	assert_memory_equal(v.series.v[v.cells.v[0].series].name.text, "a", 1); /* two of three */
	matrix_view_fini(&v);
	view(&f);
	check_view(5);
	assert_int_equal(v.left_out, 15);
	assert_int_equal(v.rows.n, 1);
	matrix_view_fini(&v);
	view(&g);
	check_view(15);
	matrix_view_fini(&v);
	view(&h);
	check_view(4);
	assert_int_equal(v.ncolumns, 1);
	assert_int_equal(v.first, 2);
	end();
}

/* Cells have a limit: a few names in lines that are far apart in time can make any number. */
static void test_crowd(void **state)
{
	begin(MATRIX_DECADES);
	m.cells_max = 100;
	for (uint64_t t = 0; t < 150; t++)
		matrix_event(&m, t * SECOND, 5, party("a", ""));
	matrix_event(&m, 7 * SECOND, 5, party("a", ""));
	view(NULL);
	check_view(101);
	assert_int_equal(m.crowded, 50);
	end();
	begin(MATRIX_DECADES);
	m.cells_max = 100;
	for (uint64_t p = 0; p < 5; p++)
		matrix_event(&m, p * 5 * SECOND, 5, party("a", &"abcde"[p]));
	assert_false(matrix_fill(&m, 0)); /* 5 * 21 */
	view(NULL);
	check_view(5);
	matrix_view_fini(&v);
	m.cells_max = 5 * 21;
	assert_true(matrix_fill(&m, 0));
	view(NULL);
	check_view(5 * 21);
	assert_int_equal(m.crowded, 0);
	end();
	/* 41 cells would become 2.6 million */
	begin(MATRIX_DECADES);
	for (uint64_t p = 0; p < 40; p++) {
		char name[8];

		snprintf(name, sizeof(name), "%d", (int)p);
		matrix_event(&m, p * 1600 * SECOND, 5, party(name, ""));
	}
	matrix_event(&m, 65000 * SECOND, 5, party("0", ""));
	assert_false(matrix_fill(&m, 0));
	view(NULL);
	check_view(41);
	end();
}

static void test_fill_and_shrink(void **state)
{
	struct matrix_axis axis = { .kind = MATRIX_FIXED, .limit = 100, .step = 5, .whole = true };
	struct matrix_view small;

	matrix_init(&m, SECOND, &axis);
	for (uint64_t t = 10; t < 75; t++)
		matrix_event(&m, t * SECOND, (int64_t)t, party("cpu0", ""));
	matrix_event(&m, 12 * SECOND, 99, party("cpu1", ""));
	matrix_fill(&m, 0);
	view(NULL);
	check_view(130);
	assert_int_equal(count_at(13, 0), 1);
	assert_int_equal(count_at(12, 0), 0);
	matrix_view_shrink(&v, 4, 3, 3, &small);
	assert_int_equal(small.ncolumns, 17); /* from 8 to 76 */
	assert_int_equal(small.rows.n, 7);
	assert_true(small.total == 130 && small.step == 4 * SECOND && small.first == 2);
	assert_true(small.rows.v[1].min == 15 && small.rows.v[1].max == 29 &&
		    small.rows.v[6].max == INT64_MAX);
	matrix_view_fini(&small);
	matrix_view_shrink(&v, 1, 4, 1, &small);
	assert_int_equal(small.rows.n, 6);
	assert_true(small.rows.v[0].max == 4 && small.rows.v[1].max == 24 &&
		    small.rows.v[5].min == 85 && small.total == 130);
	assert_int_equal(small.cells.v[0].row, 0); /* 0% and 10% in the first second */
	assert_int_equal(small.cells.v[1].row, 1);
	matrix_view_fini(&small);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decades), cmocka_unit_test(test_linear),
		cmocka_unit_test(test_fixed),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_gaps),    cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_filter),  cmocka_unit_test(test_fill_and_shrink),
		cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
