/* Ticks that fire although the kernel leaves their program out.
 *
 * The kernel does not run the program of a timer while the CPU is in a bpf(2) call on the elements
 * of a map, whoever makes it, or in another program of a timer, kprobe or tracepoint
 * (bpf_prog_active in bpf_overflow_handler()). It does not count these firings, and a CPU that
 * stood still for longer than a period gets one interrupt for all its periods. So each tick has a
 * second timer on the same CPU, which mostly rests. A thread looks a little after each tick, and at
 * most each 10 ms, whether the program has taken the tick (struct wire_tick). If not, it lets the
 * second timer run until all ticks are taken. Both timers interrupt the same CPU, so that the
 * program cannot run twice at a time.
 */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/clock.h"
#include "wire/tick.h"

static const uint64_t GRACE = 1000000, LOOKS = 10000000; /* ns */
static const uint64_t SECOND_PERIOD = 20000;
enum { SECOND_TRIES = 200, SECOND_NAP = 50000 /* ns */ };

struct tick {
	struct wire_tick *shared;
	uint64_t period;
	uint64_t look; /* when the thread looks next */
	int second;    /* the second timer's event */
};

struct ticks {
	VEC(struct tick) v;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	pthread_cond_t stop;
	bool stopping;
};

static uint64_t next_of(const struct tick *t)
{
	return __atomic_load_n(&t->shared->next, __ATOMIC_RELAXED);
}

static void nap(uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };

	nanosleep(&t, NULL);
}

/* Lets the second timer run until no tick is due, or for some 10 ms. It may be left out, too. */
static void make_up(const struct tick *t)
{
	if (ioctl(t->second, PERF_EVENT_IOC_ENABLE, 0))
		return;
	for (int i = 0; i < SECOND_TRIES && next_of(t) <= now_ns(); i++)
		nap(SECOND_NAP);
	ioctl(t->second, PERF_EVENT_IOC_DISABLE, 0);
}

static uint64_t grace_of(const struct tick *t)
{
	return t->period / 2 < GRACE ? t->period / 2 : GRACE;
}

/* Looks at the tick if it is time, and sets the time of the next look. */
static void ticks_look_at(struct tick *t)
{
	uint64_t next = next_of(t), now = now_ns();

	if (now < t->look)
		return;
	if (next + grace_of(t) <= now) {
		make_up(t);
		next = next_of(t);
		now = now_ns();
	}
	t->look = next + grace_of(t);
	if (t->look < now + LOOKS)
		t->look += (now + LOOKS - t->look + t->period - 1) / t->period * t->period;
}

static void *watch_ticks(void *arg)
{
	struct ticks *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		uint64_t look = UINT64_MAX;
		struct timespec until;

		for (uint32_t i = 0; i < s->v.n; i++)
			if (s->v.v[i].look < look)
				look = s->v.v[i].look;
		until = (struct timespec){ .tv_sec = (time_t)(look / 1000000000),
					   .tv_nsec = (long)(look % 1000000000) };
		if (!pthread_cond_timedwait(&s->stop, &s->lock, &until))
			continue;
		pthread_mutex_unlock(&s->lock);
		for (uint32_t i = 0; i < s->v.n; i++)
			ticks_look_at(&s->v.v[i]);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct err *ticks_add(struct kernel_engine *k, const struct instance *in, const struct probe *p,
		      uint32_t cpu, uint64_t cookie)
{
	const struct kmap *m = maps_role(k, MAP_TICKS);
	struct tick t = { .period = p->period_ns };
	int second;
	struct err *e;

	if (!k->ticks) {
		pthread_condattr_t clock;

		k->ticks = xcalloc(1, sizeof(*k->ticks));
		pthread_mutex_init(&k->ticks->lock, NULL);
		pthread_condattr_init(&clock);
		pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
		pthread_cond_init(&k->ticks->stop, &clock);
		pthread_condattr_destroy(&clock);
	}
	t.shared = (struct wire_tick *)m->mem + k->e.image->progs[in->prog].tick - 1;
	/* The timer starts after this, so that it is never early. */
	t.shared->next = now_ns() + p->period_ns;
	t.look = t.shared->next + grace_of(&t);
	e = timer_open(p, p->period_ns, cpu, true, &second);
	if (!e && second >= 0)
		e = timer_attach(k, in, second, cookie);
	if (e || second < 0)
		return e;
	e = timer_open(p, SECOND_PERIOD, cpu, false, &second);
	if (e || second < 0)
		return e;
	t.second = fcntl(second, F_DUPFD_CLOEXEC, 0);
	e = timer_attach(k, in, second, cookie);
	if (!e && t.second < 0)
		e = err_errno(errno, "opening a timer");
	if (e)
		close(t.second);
	else
		vec_push(&k->ticks->v, t);
	return e;
}

struct err *ticks_watch(struct kernel_engine *k)
{
	sigset_t all, before;
	int error;

	if (!k->ticks || k->ticks->runs)
		return NULL;
	/* Signals are for the thread that traces. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&k->ticks->thread, NULL, watch_ticks, k->ticks);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return err_errno(error, "starting the thread that watches ticks");
	k->ticks->runs = true;
	return NULL;
}

uint64_t ticks_lost(const struct kernel_engine *k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; k->ticks && i < k->ticks->v.n; i++)
		sum += __atomic_load_n(&k->ticks->v.v[i].shared->lost, __ATOMIC_RELAXED);
	return sum;
}

void ticks_stop(struct kernel_engine *k)
{
	struct ticks *s = k->ticks;

	if (!s || !s->runs)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_signal(&s->stop);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->runs = false;
}

void ticks_free(struct kernel_engine *k)
{
	struct ticks *s = k->ticks;

	if (!s)
		return;
	ticks_stop(k);
	for (uint32_t i = 0; i < s->v.n; i++)
		close(s->v.v[i].second);
	vec_fini(&s->v);
	pthread_cond_destroy(&s->stop);
	pthread_mutex_destroy(&s->lock);
	free(s);
	k->ticks = NULL;
}
