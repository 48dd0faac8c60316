/* Requests of threads that ring (src/load/inproc/inproc_bells.c), in a time of its own: a thread
 * takes a number, and writes its request later. */
#include "unit.h"

#include "base/clock.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/patch/bell.h"

static uint64_t now;
/* When the request is written, and where; NULL: never. */
static uint64_t written_at;
static struct inproc_ask *written;

static uint64_t made_now(void)
{
	return now;
}

static void made_nap(uint64_t ns)
{
	now += ns;
	if (written && now >= written_at) {
		written->what = BELL_LOADS;
		written = NULL;
	}
}

static const struct clock_source made = { made_now, made_nap };

/* Number 0 is taken `after` ns before its request is written, if it comes; number 1 is complete.
 * Returns the ns until both were read. */
static uint64_t take_both(uint64_t after, bool comes)
{
	struct inproc_engine *e = xcalloc(1, sizeof(*e));
	struct inproc_bell *b = xcalloc(1, sizeof(*b));
	const uint64_t begun = now = 1000000000;

	e->bells.bell = b;
	b->asked = 2;
	b->asks[1].what = BELL_LOADS;
	written_at = begun + after;
	written = comes ? &b->asks[0] : NULL;
	clock_use(&made);
	for (uint32_t i = 0; e->bells.seen != 2; i++) {
		assert_true(i < 10000);
		/* bell_take() passes no request on that its thread has not written */
		assert_int_equal(e->bells.seen, 0);
		assert_false(e->family.loads_asked);
		bell_take(e);
		made_nap(1000000);
	}
	clock_use(NULL);
	assert_true(e->family.loads_asked);
	assert_int_equal(b->asks[0].what, 0);
	free(b);
	free(e);
	return now - begun;
}

static void test_written_late(void **state)
{
	const uint64_t ms = 1000000;

	assert_true(take_both(0, true) < 5 * ms);
	assert_true(take_both(20 * ms, true) >= 20 * ms);
	assert_true(take_both(20 * ms, true) < 30 * ms);
	assert_true(take_both(200 * ms, true) < 210 * ms);
	/* its thread was killed */
	assert_true(take_both(0, false) < 400 * ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_written_late) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
