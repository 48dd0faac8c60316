/* Timers of engines that wait in this process: each period is one firing, in order, until it is too
 * late. */
#include "unit.h"

#include <poll.h>

#include "base/clock.h"
#include "load/timers.h"
#include "wire/tick.h"

static const uint64_t MS = 1000000;

/* Timers of 3 ms (program 1) and 5 ms (program 2) from time 0. */
static void make(struct timers *t)
{
	timers_init(t);
	timers_add(t, &(struct timer){ .prog = 1, .next = 3 * MS, .period = 3 * MS });
	timers_add(t, &(struct timer){ .prog = 2, .next = 5 * MS, .period = 5 * MS });
	assert_null(timers_arm(t));
}

static void test_each_period_fires_in_order(void **state)
{
	static const uint32_t want[] = { 1, 2, 1, 1, 2, 1 }; /* 3 5 6 9 10 12 */
	struct timers t;

	make(&t);
	assert_null(timers_take(&t, 3 * MS - 1));
	for (uint32_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct timer *timer = timers_take(&t, 14 * MS);

		assert_non_null(timer);
		assert_int_equal(timer->prog, want[i]);
	}
	assert_null(timers_take(&t, 14 * MS));
	assert_int_equal(timers_next(&t), 15 * MS);
	assert_int_equal(t.lost, 0);
	timers_stop(&t);
}

static void test_too_late_is_counted(void **state)
{
	const uint64_t now = 3 * MS + WIRE_TICK_LATE + 3 * MS + 1;
	uint64_t fired = 0;
	struct timers t;

	timers_init(&t);
	timers_add(&t, &(struct timer){ .next = 3 * MS, .period = 3 * MS });
	assert_null(timers_arm(&t));
	while (timers_take(&t, now))
		fired++;
	assert_int_equal(fired, 1);
	assert_int_equal(fired + t.lost, now / (3 * MS));
	assert_int_equal(timers_next(&t), (now / (3 * MS) + 1) * 3 * MS);
	timers_stop(&t);
}

static void test_samples_are_not_made_up(void **state)
{
	struct timers t;

	timers_init(&t);
	timers_add(&t, &(struct timer){ .next = MS, .period = MS, .late_is_lost = true });
	assert_null(timers_arm(&t));
	assert_non_null(timers_take(&t, 100 * MS + 1));
	assert_null(timers_take(&t, 100 * MS + 1));
	assert_int_equal(timers_next(&t), 101 * MS);
	assert_int_equal(t.lost, 0);
	timers_stop(&t);
}

static void test_descriptor_is_readable_when_one_is_due(void **state)
{
	struct timers t;
	struct pollfd p;

	timers_init(&t);
	assert_int_equal(timers_next(&t), UINT64_MAX);
	assert_null(timers_arm(&t)); /* none: no descriptor */
	assert_int_equal(t.fd, -1);
	timers_add(&t, &(struct timer){ .next = now_ns() + 3600 * 1000 * MS, .period = MS });
	assert_null(timers_arm(&t));
	p = (struct pollfd){ .fd = t.fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	timers_add(&t, &(struct timer){ .next = now_ns(), .period = MS });
	assert_null(timers_arm(&t));
	assert_int_equal(poll(&p, 1, -1), 1);
	timers_stop(&t);
	assert_null(timers_take(&t, UINT64_MAX));
	assert_int_equal(t.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_period_fires_in_order),
		cmocka_unit_test(test_too_late_is_counted),
		cmocka_unit_test(test_samples_are_not_made_up),
		cmocka_unit_test(test_descriptor_is_readable_when_one_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
