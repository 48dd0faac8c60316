/* How long bells wait (src/load/inproc/memory/pace.h), in a time of its own. */
#include "unit.h"

#include "load/inproc/memory/pace.h"

enum { MS = 1000000, SECOND = 1000 * MS };

/* Runs rounds of `work` ns for 10 seconds, each `gap` ns after the one before, or earlier for a
 * waiting bell. Returns the ns that bells waited beyond their limit; *ret_busy: ns in rounds. */
static uint64_t run(struct pace *p, uint64_t work, uint64_t gap, bool rung, uint64_t *ret_busy)
{
	uint64_t now = SECOND, end = now + 10ull * SECOND, waited = 0, pause;

	*ret_busy = 0;
	while (now < end) {
		pace_begin(p, now, rung);
		now += work;
		*ret_busy += work;
		pause = pace_end(p, now);
		assert_true(pause <= PACE_MAX);
		waited += pause > gap ? pause - gap : 0;
		now += pause > gap ? pause : gap;
	}
	return waited;
}

/* A process that rings on and on, with rounds that are short, or long. */
static void test_on_and_on(void **state)
{
	const uint64_t works[] = { MS / 50, MS, 15 * MS };
	uint64_t busy;

	for (uint32_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		struct pace p = { 0 };

		assert_true(run(&p, works[i], 0, true, &busy) > 4ull * SECOND);
		assert_true(busy < 6ull * SECOND);
	}
}

/* Rounds longer than a bell may wait still leave some time between them. */
static void test_long_rounds(void **state)
{
	struct pace p = { 0 };
	uint64_t busy;

	assert_true(run(&p, 60 * MS, 0, true, &busy) > 2ull * SECOND);
}

static void test_now_and_then(void **state)
{
	struct pace p = { 0 };
	uint64_t busy;

	assert_int_equal(run(&p, 10 * MS, 15 * MS, true, &busy), 0);
	assert_int_equal(run(&p, 60 * MS, 0, false, &busy), 0); /* no bell began them */
}

/* A burst as large as the bucket, and another when it is empty. */
static void test_burst(void **state)
{
	struct pace p = { 0 };
	uint64_t now = SECOND;

	for (int burst = 0; burst < 3; burst++, now += SECOND)
		for (int i = 0; i < 10; i++) {
			pace_begin(&p, now, true);
			now += 9 * MS;
			assert_int_equal(pace_end(&p, now), 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_and_on),
		cmocka_unit_test(test_long_rounds),
		cmocka_unit_test(test_now_and_then),
		cmocka_unit_test(test_burst),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
