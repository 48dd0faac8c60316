/* Waits for bells (patch/bell.c), timers and events, and passes on the threads' requests. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
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
enum { SYS_futex_waitv_ = 449, FUTEX_32_BITS = 2, WAIT_MAX = 128 };
enum { UNWRITTEN_NAPS = 20, UNWRITTEN_NAP_NS = 50000, UNWRITTEN_NS = 300000000 };

static void sleep_until(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* The words that threads of the engines' processes change when they ring. */
struct ringing {
	struct waitv words[WAIT_MAX];
	const struct inproc_engine *of[WAIT_MAX];
	uint32_t n;
};

static void watch_word(struct ringing *r, const struct inproc_engine *e, const uint32_t *word,
		       uint32_t seen)
{
	if (r->n == WAIT_MAX)
		return;
	r->words[r->n] = (struct waitv){ seen, (uintptr_t)word, FUTEX_32_BITS, 0 };
	r->of[r->n++] = e;
}

static void watch_engine(struct ringing *r, struct inproc_engine *e)
{
	uint32_t seen = 0, *asks = events_bell(e, &seen);

	if (asks)
		watch_word(r, e, asks, seen);
	if (e->bells.bell) {
		__atomic_store_n(&e->bells.bell->on, 1, __ATOMIC_RELEASE);
		watch_word(r, e, &e->bells.bell->asked, e->bells.seen);
	}
}

static bool has_rung(const struct ringing *r, const struct inproc_engine *e)
{
	bool rung = false;

	for (uint32_t i = 0; i < r->n; i++)
		rung |= r->of[i] == e &&
			__atomic_load_n((const uint32_t *)(uintptr_t)r->words[i].address,
					__ATOMIC_ACQUIRE) != (uint32_t)r->words[i].value;
	return rung;
}

/* Waits for a change of one of the words, until `until` (CLOCK_MONOTONIC ns). */
static void wait_for_words(struct ringing *r, uint64_t now, uint64_t until)
{
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	if (r->n > 1 && (syscall(SYS_futex_waitv_, r->words, r->n, 0, &t, CLOCK_MONOTONIC) >= 0 ||
			 errno != ENOSYS))
		return;
	/* an older kernel waits for one futex; requests at the other ones are answered after the
	 * time-out */
	t = (struct timespec){ .tv_sec = (time_t)((until - now) / 1000000000),
			       .tv_nsec = (long)((until - now) % 1000000000) };
	syscall(SYS_futex, r->words[r->n - 1].address, FUTEX_WAIT,
		(uint32_t)r->words[r->n - 1].value, &t, NULL, 0);
}

/* Waits until a bell rings, but at least `pause` ns, or until a timer is due. */
static void wait_for_bell(struct inproc_engine *const *e, uint32_t n, struct ringing *r,
			  uint64_t until, uint64_t pause)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < n; i++)
		if (timers_next(&e[i]->bells.timers) < until)
			until = timers_next(&e[i]->bells.timers);
	if (until > now && (pause || !r->n)) {
		sleep_until(r->n && now + pause < until ? now + pause : until);
		now = now_ns();
	}
	if (until > now && r->n)
		wait_for_words(r, now, until);
}

void bell_wait(struct inproc_engine *const *e, uint32_t n, int timeout_ms)
{
	uint64_t pause = 0, now = now_ns();
	struct ringing r = { .n = 0 };

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t one = pace_end(&e[i]->bells.pace, now);

		pause = one > pause ? one : pause;
		watch_engine(&r, e[i]);
	}
	wait_for_bell(e, n, &r, now + (uint64_t)timeout_ms * 1000000, pause);
	now = now_ns();
	for (uint32_t i = 0; i < n; i++)
		pace_begin(&e[i]->bells.pace, now, has_rung(&r, e[i]));
}

/* Returns the next request, 0: its thread has taken a number and not written the request yet. A
 * busy machine may run other programs between the two, so the next rounds look again; a thread that
 * was stopped or killed there delays the requests behind its own for UNWRITTEN_NS. */
static uint32_t read_ask(struct inproc_engine *e, uint64_t *ret_arg)
{
	struct inproc_ask *a = &e->bells.bell->asks[e->bells.seen % BELL_ASKS];
	uint32_t what = __atomic_exchange_n(&a->what, 0, __ATOMIC_ACQ_REL);

	for (int i = 0; i < UNWRITTEN_NAPS && !what; i++) {
		nap_ns(UNWRITTEN_NAP_NS);
		what = __atomic_exchange_n(&a->what, 0, __ATOMIC_ACQ_REL);
	}
	*ret_arg = __atomic_load_n(&a->arg, __ATOMIC_ACQUIRE);
	if (!what && !e->bells.unwritten)
		e->bells.unwritten = now_ns();
	if (!what && now_ns() < e->bells.unwritten + UNWRITTEN_NS)
		return 0;
	e->bells.unwritten = 0;
	e->bells.seen++;
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
		uint32_t what = read_ask(e, &arg);

		if (!what)
			return;
		if (what == BELL_LOADS)
			e->family.loads_asked = true;
		else
			execs_asked(e, (pid_t)what, arg);
	}
}
