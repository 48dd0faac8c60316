/* Timers that a tracer waits for: one timerfd for all. Each period that passed fires once. */
#define _GNU_SOURCE
#include "load/timers.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "wire/tick.h"

void timers_init(struct timers *t)
{
	*t = (struct timers){ .fd = -1 };
}

void timers_add(struct timers *t, const struct timer *timer)
{
	vec_push(&t->v, *timer);
}

static struct timer *first_due(const struct timers *t)
{
	struct timer *first = NULL;

	for (uint32_t i = 0; i < t->v.n; i++)
		if (!first || t->v.v[i].next < first->next)
			first = &t->v.v[i];
	return first;
}

uint64_t timers_next(const struct timers *t)
{
	const struct timer *first = first_due(t);

	return first ? first->next : UINT64_MAX;
}

struct err *timers_arm(struct timers *t)
{
	const uint64_t next = timers_next(t);
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(next / 1000000000),
						       .tv_nsec = (long)(next % 1000000000) } };

	if (!t->v.n)
		return NULL;
	if (t->fd < 0)
		t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->fd < 0 || timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &when, NULL))
		return err_errno(errno, "timerfd");
	return NULL;
}

const struct timer *timers_take(struct timers *t, uint64_t now)
{
	struct timer *first = t->fd >= 0 ? first_due(t) : NULL;
	uint64_t late;

	if (!first || first->next > now)
		return NULL;
	late = now - first->next;
	if (first->late_is_lost) {
		first->next += late / first->period * first->period;
	} else if (late >= WIRE_TICK_LATE + first->period) {
		t->lost += late / first->period;
		first->next += late / first->period * first->period;
	}
	first->next += first->period;
	return first;
}

void timers_stop(struct timers *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	vec_fini(&t->v);
}
