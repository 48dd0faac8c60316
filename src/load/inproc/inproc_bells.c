/* Waits for bells (patch/bell.c), timers and events, and passes on the threads' requests. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/memory/pace.h"
#include "load/inproc/patch/bell.h"

/* <linux/futex.h> as of Linux 5.16 */
struct waitv {
	uint64_t value, address;
	uint32_t flags, pad;
};
enum { SYS_futex_waitv_ = 449, FUTEX_32_BITS = 2 };

static void sleep_until(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Waits until a bell rings, but at least `pause` ns, or until a timer is due. Returns true when a
 * bell has rung. */
static bool wait_for_bell(struct inproc_engine *e, int timeout_ms, uint64_t pause)
{
	struct pollfd p = { .fd = e->bells.timers.fd, .events = POLLIN };
	struct waitv words[2];
	uint32_t n = 0, seen = 0, *asks = events_bell(e, &seen);
	uint64_t now, until;
	struct timespec t;

	if (!e->bells.bell && !asks) {
		poll(&p, e->bells.timers.fd >= 0, timeout_ms);
		return false;
	}
	if (asks)
		words[n++] = (struct waitv){ seen, (uintptr_t)asks, FUTEX_32_BITS, 0 };
	if (e->bells.bell) {
		__atomic_store_n(&e->bells.bell->on, 1, __ATOMIC_RELEASE);
		words[n++] = (struct waitv){ e->bells.seen, (uintptr_t)&e->bells.bell->asked,
					     FUTEX_32_BITS, 0 };
	}
	now = now_ns();
	until = now + (uint64_t)timeout_ms * 1000000;
	if (timers_next(&e->bells.timers) < until)
		until = timers_next(&e->bells.timers);
	if (until <= now)
		return bell_rings(e);
	if (pause) {
		sleep_until(now + pause < until ? now + pause : until);
		now = now_ns();
		if (until <= now)
			return bell_rings(e);
	}
	t = (struct timespec){ .tv_sec = (time_t)(until / 1000000000),
			       .tv_nsec = (long)(until % 1000000000) };
	if (n == 2 &&
	    (syscall(SYS_futex_waitv_, words, n, 0, &t, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS))
		goto out;
	/* an older kernel waits for one futex; requests at the other one are answered after the
	 * time-out */
	t = (struct timespec){ .tv_sec = (time_t)((until - now) / 1000000000),
			       .tv_nsec = (long)((until - now) % 1000000000) };
	syscall(SYS_futex, words[n - 1].address, FUTEX_WAIT, (uint32_t)words[n - 1].value, &t, NULL,
		0);
out:
	return bell_rings(e) || (asks && __atomic_load_n(asks, __ATOMIC_ACQUIRE) != seen);
}

void bell_wait(struct inproc_engine *e, int timeout_ms)
{
	const uint64_t pause = pace_end(&e->bells.pace, now_ns());
	const bool rung = wait_for_bell(e, timeout_ms, pause);

	pace_begin(&e->bells.pace, now_ns(), rung);
}

/* Returns request number `n`. Does not wait long for a thread that was stopped or killed before it
 * wrote the request. */
static uint32_t read_ask(struct inproc_bell *b, uint32_t n, uint64_t *ret_arg)
{
	struct inproc_ask *a = &b->asks[n % BELL_ASKS];
	uint32_t what = 0;

	for (int i = 0; i < 1000 && !what; i++)
		what = __atomic_exchange_n(&a->what, 0, __ATOMIC_ACQ_REL);
	*ret_arg = __atomic_load_n(&a->arg, __ATOMIC_ACQUIRE);
	return what ?: BELL_LOADS;
}

void bell_take(struct inproc_engine *e)
{
	uint32_t asked = e->bells.bell ? __atomic_load_n(&e->bells.bell->asked, __ATOMIC_ACQUIRE)
				       : 0;

	if (!e->bells.bell)
		return;
	if (asked - e->bells.seen > BELL_ASKS) {
		/* more requests than the list holds: the oldest are not known any more */
		e->family.loads_asked = true;
		e->bells.seen = asked - BELL_ASKS;
	}
	while (e->bells.seen != asked) {
		uint64_t arg;
		uint32_t what = read_ask(e->bells.bell, e->bells.seen++, &arg);

		if (what == BELL_LOADS)
			e->family.loads_asked = true;
		else
			execs_asked(e, (pid_t)what, arg);
	}
}
