/* Provider cpc: EVENT-MODE-COUNT. */
#include "unit.h"

#include <linux/perf_event.h>

#include "probe/probe.h"

struct world {
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set ps;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->types = type_graph_new();
	w->symbols = symbols_new();
	probe_set_init(&w->ps, w->types, w->symbols);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
	type_graph_free(w->types);
	free(w);
	return 0;
}

static void keep_last(void *arg, struct probe *p)
{
	*(struct probe **)arg = p;
}

static struct probe *find(struct world *w, const char *name, uint32_t *ret_n)
{
	struct probe_desc pd = { "cpc", "", "", name };
	struct probe *p = NULL;

	assert_null(probe_match(&w->ps, &pd, keep_last, &p, ret_n));
	return p;
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		uint8_t event;
		bool no_user, no_kernel;
		uint64_t count;
	} good[] = {
		{ "page_faults-all-1000", PERF_COUNT_SW_PAGE_FAULTS, false, false, 1000 },
		{ "minor_faults-user-1", PERF_COUNT_SW_PAGE_FAULTS_MIN, false, true, 1 },
		{ "cs-kernel-5", PERF_COUNT_SW_CONTEXT_SWITCHES, true, false, 5 },
		{ "cpu_clock-all-200000", PERF_COUNT_SW_CPU_CLOCK, false, false, 200000 },
		{ "migrations-all-10", PERF_COUNT_SW_CPU_MIGRATIONS, false, false, 10 },
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		uint32_t n;
		struct probe *p = find(w, good[i].name, &n);

		assert_int_equal(n, 1);
		assert_null(p->unavailable);
		assert_int_equal(p->kind, ATTACH_PROFILE);
		assert_int_equal(p->perf.event, good[i].event);
		assert_false(p->perf.hardware);
		assert_int_equal(p->perf.no_user, good[i].no_user);
		assert_int_equal(p->perf.no_kernel, good[i].no_kernel);
		assert_int_equal(p->period_ns, good[i].count);
	}
}

static void test_wrong_names(void **state)
{
	static const struct {
		const char *name, *why;
	} bad[] = {
		{ "page_faults", "EVENT-MODE-COUNT" },
		{ "page_faults-all", "EVENT-MODE-COUNT" },
		{ "bogus-all-100", "no such event" },
		{ "page_faults-both-100", "user, kernel or all" },
		{ "page_faults-all-0", "1 or more" },
		{ "page_faults-all-1x", "1 or more" },
		{ "page_faults-all-", "1 or more" },
		{ "page_faults-all-99999999999999999999", "1 or more" },
		{ "cpu_clock-user-1000", "nanoseconds" },
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct probe_desc pd = { "cpc", "", "", bad[i].name };
		uint32_t n;
		char *why;

		find(w, bad[i].name, &n);
		assert_int_equal(n, 0);
		why = probe_explain(&w->ps, &pd);
		assert_non_null(why);
		assert_non_null(strstr(why, bad[i].why));
		free(why);
	}
}

/* Every listed one is numbered within the range, in the order listed, and found again by number. */
static void test_list(void **state)
{
	struct world *w = *state;
	struct probe *p;
	uint32_t n, again;

	p = find(w, "", &n);
	assert_true(n >= 36);
	assert_int_equal(p->id, 20900 + n - 1);
	find(w, "cs-*", &again);
	assert_int_equal(again, 3);
	find(w, "cs-all-7", &again);
	find(w, "", &again);
	assert_int_equal(again, n + 1);
	assert_null(probe_by_id(&w->ps, 20900, &p));
	assert_string_equal(p->name, "cpu_clock-user-1000000");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_wrong_names),
		TEST(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
