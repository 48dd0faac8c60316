/* Plays operations with the malloc(3) of this process. Its own memory comes from mmap(2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/meminfo.h"
#include "base/ticks.h"
#include "memory/alloc/replay.h"

enum {
	PAGE = 4096,
	LOOKS = 2000,
	EARLY = 50000, /* ns: so little is not slept */
	SPINS = 1000,  /* then a lane that waits for another one gives its processor away, */
	YIELDS = 100,  /* and then sleeps for NAP ns at a time */
	NAP = 20000,
	HIST_SUB = 32, /* buckets of a power of two of ticks */
	HIST = 40 * HIST_SUB,
};

struct player;

struct played_lane {
	struct player *p;
	pthread_t thread;
	uint32_t number;
	uint64_t time;     /* of the last AT */
	uint64_t excluded; /* CPU time of waiting, ns */
	uint64_t ns, failed;
	uint32_t *hist; /* EACH */
	uint64_t most_ticks;
	_Alignas(64) uint64_t done; /* calls; other lanes read it */
	int64_t live;               /* SPACE: bytes; blocks of other lanes make it negative */
};

struct player {
	const struct replay_head *head;
	const struct replay_op *ops;
	void **slots;
	uint64_t *sizes; /* SPACE, or REPLAY_TOUCH */
	int statm;
	enum replay_mode mode;
	uint32_t flags;
	struct replay_result *ret;
	uint64_t base;
	struct played_lane *lanes;
	uint64_t began; /* now_ns() */
	uint32_t go;
	uint64_t tick_cost; /* of reading the counter twice */
	pthread_mutex_t looking;
};

/* Anonymous memory: pages of the operations come and go when these are on disk. */
static uint64_t resident(const struct player *p)
{
	char text[128];
	ssize_t n = pread(p->statm, text, sizeof(text) - 1, 0);
	uint64_t all, shared;
	char *at;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strchr(text, ' ');
	all = at ? strtoull(at, &at, 10) : 0;
	shared = at ? strtoull(at, NULL, 10) : 0;
	return all > shared ? (all - shared) * PAGE : 0;
}

static uint64_t live_bytes(const struct player *p)
{
	int64_t live = 0;

	for (uint64_t i = 0; i < p->head->nlanes; i++)
		live += __atomic_load_n(&p->lanes[i].live, __ATOMIC_RELAXED);
	return live > 0 ? (uint64_t)live : 0;
}

/* regular: it counts for the average. */
static void replay_play_look(struct played_lane *l, bool regular)
{
	struct player *p = l->p;
	struct replay_result *r = p->ret;
	struct replay_point *at;
	uint64_t now, live, i;

	pthread_mutex_lock(&p->looking);
	now = resident(p);
	now = now > p->base ? now - p->base : 0;
	live = live_bytes(p);
	if (now > r->peak)
		r->peak = now;
	r->sum += regular ? now : 0;
	r->live_sum += regular ? live : 0;
	i = r->looks * REPLAY_POINTS / (LOOKS + p->head->nlanes + 1);
	r->looks += regular;
	if (i >= REPLAY_POINTS)
		i = REPLAY_POINTS - 1;
	at = &r->points[i];
	if (i >= r->npoints) {
		*at = (struct replay_point){ .time = i ? at[-1].time : 0 };
		r->npoints = i + 1;
	}
	if (l->time > at->time)
		at->time = l->time;
	if (now >= at->resident) {
		at->resident = now;
		at->live = live;
	}
	pthread_mutex_unlock(&p->looking);
}

static inline void *call(const struct replay_op *op, void *old)
{
	void *p = NULL;

	switch (op->kind) {
	case REPLAY_MALLOC: return malloc(op->size);
	case REPLAY_CALLOC: return calloc(1, op->size);
	case REPLAY_ALIGNED:
		return posix_memalign(&p, op->align > 3 ? 1ul << op->align : sizeof(p), op->size)
			       ? NULL
			       : p;
	case REPLAY_REALLOC: return realloc(old, op->size ? op->size : 1); /* 0 may free it */
	default: free(old); return NULL;
	}
}

/* --- what is no call --- */

static void sleep_until(struct played_lane *l, uint64_t time)
{
	uint64_t wake = l->p->began + time, cpu;
	struct timespec t = { (time_t)(wake / 1000000000), (long)(wake % 1000000000) };

	if (now_ns() + EARLY >= wake)
		return;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	l->excluded += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

static void wait_for(struct played_lane *l, const struct replay_op *op)
{
	const uint64_t *done = &l->p->lanes[op->slot].done;
	uint64_t cpu;

	if (__atomic_load_n(done, __ATOMIC_ACQUIRE) >= op->size)
		return;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) < op->size; i++) {
		if (i < SPINS)
			__builtin_ia32_pause();
		else if (i < SPINS + YIELDS)
			sched_yield();
		else
			nap_ns(NAP);
	}
	l->excluded += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* Returns the next operation; NULL: the lane has ended. */
static __attribute__((noinline)) const struct replay_op *control(struct played_lane *l,
								 const struct replay_op *op)
{
	switch (op->kind) {
	case REPLAY_AT:
		l->time = op->size;
		if (l->p->flags & REPLAY_RECORDED)
			sleep_until(l, op->size);
		return op + 1;
	case REPLAY_WAIT: wait_for(l, op); return op + 1;
	case REPLAY_NEXT: return l->p->ops + op->size * REPLAY_CHUNK;
	default: return NULL;
	}
}

/* --- the loops --- */

static inline void touch(char *b, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += PAGE)
		*(volatile char *)(b + at) = 1;
	if (to > from)
		*(volatile char *)(b + to - 1) = 1;
}

static uint32_t bucket_of(uint64_t ticks)
{
	uint32_t bits, i;

	if (ticks < HIST_SUB)
		return (uint32_t)ticks;
	bits = 63 - (uint32_t)__builtin_clzll(ticks);
	i = (bits - 4) * HIST_SUB + (uint32_t)(ticks >> (bits - 5) & (HIST_SUB - 1));
	return i < HIST ? i : HIST - 1;
}

/* The least number of ticks of a bucket. */
static uint64_t bucket_from(uint32_t i)
{
	return i < HIST_SUB ? i : (uint64_t)(HIST_SUB + i % HIST_SUB) << (i / HIST_SUB - 1);
}

static inline __attribute__((always_inline)) void play_calls(struct played_lane *l,
							     enum replay_mode mode, bool touches)
{
	static uint64_t line[8];
	void *volatile const block = line;
	struct player *p = l->p;
	const struct replay_op *op = p->ops + p->head->first[l->number] * REPLAY_CHUNK;
	const uint64_t each = p->head->ncalls / LOOKS + 1;
	uint64_t done = 0, failed = 0;
	int64_t live = 0, most = 0;

	while (op) {
		void *b;

		if (__builtin_expect(op->kind > REPLAY_FREE, 0)) {
			op = control(l, op);
			continue;
		}
		if (mode == REPLAY_EMPTY) {
			b = op->kind == REPLAY_FREE ? NULL : block;
			*(void *volatile *)&p->slots[op->slot] = b;
		} else {
			uint64_t ticks = mode == REPLAY_EACH ? ticks_now() : 0;

			b = call(op, p->slots[op->slot]);
			if (mode == REPLAY_EACH) {
				ticks = ticks_now() - ticks;
				ticks -= ticks < p->tick_cost ? ticks : p->tick_cost;
				l->hist[bucket_of(ticks)]++;
				if (ticks > l->most_ticks)
					l->most_ticks = ticks;
			}
			if (b || op->kind == REPLAY_FREE)
				p->slots[op->slot] = b;
			else
				failed += op->size != 0;
		}
		if (mode != REPLAY_EMPTY && touches && (b || op->kind == REPLAY_FREE)) {
			uint64_t from = p->sizes[op->slot];

			live += (int64_t)(op->size - from);
			p->sizes[op->slot] = op->size;
			if (b)
				touch(b, op->kind == REPLAY_REALLOC ? from : 0, op->size);
		} else if (b && op->size >= sizeof(uint64_t)) {
			*(volatile uint64_t *)b = done;
		}
		done++;
		__atomic_store_n(&l->done, done, __ATOMIC_RELEASE);
		if (mode == REPLAY_SPACE) {
			__atomic_store_n(&l->live, live, __ATOMIC_RELAXED);
			if (p->head->nlanes == 1 && live > (int64_t)p->ret->live_peak)
				p->ret->live_peak = (uint64_t)live;
			/* now and then, and where the live bytes rise over what they were */
			if (done % each == 0 || live > most + most / 64)
				replay_play_look(l, done % each == 0);
			if (live > most + most / 64)
				most = live;
		}
		op++;
	}
	if (mode == REPLAY_SPACE)
		replay_play_look(l, true);
	l->failed = failed;
}

static void *play_lane(void *arg)
{
	struct played_lane *l = arg;
	bool touches = l->p->flags & REPLAY_TOUCH;
	uint64_t began;

	while (!__atomic_load_n(&l->p->go, __ATOMIC_ACQUIRE))
		sched_yield();
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	switch (l->p->mode) {
	case REPLAY_TIME:
		if (touches)
			play_calls(l, REPLAY_TIME, true);
		else
			play_calls(l, REPLAY_TIME, false);
		break;
	case REPLAY_EMPTY: play_calls(l, REPLAY_EMPTY, false); break;
	case REPLAY_SPACE: play_calls(l, REPLAY_SPACE, true); break;
	case REPLAY_EACH: play_calls(l, REPLAY_EACH, touches); break;
	}
	l->ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began - l->excluded;
	return NULL;
}

/* --- all lanes --- */

static uint64_t part_of(const uint64_t *sums, uint64_t total, double part, double ns_per_tick)
{
	uint64_t want = (uint64_t)((double)total * part), seen = 0;
	uint32_t i = 0;

	for (; i + 1 < HIST; i++) {
		seen += sums[i];
		if (seen > want)
			break;
	}
	return (uint64_t)((double)bucket_from(i) * ns_per_tick + 0.5);
}

static void sum_up(struct player *p, uint64_t ticks)
{
	static uint64_t sums[HIST];
	struct replay_result *r = p->ret;
	uint64_t total = 0, most = 0;
	double ns_per_tick = ticks ? (double)r->wall / (double)ticks : 0;

	for (uint64_t i = 0; i < p->head->nlanes; i++) {
		const struct played_lane *l = &p->lanes[i];

		r->ns += l->ns;
		r->failed += l->failed;
		most = l->most_ticks > most ? l->most_ticks : most;
		for (uint32_t k = 0; k < HIST && l->hist; k++) {
			sums[k] += l->hist[k];
			total += l->hist[k];
		}
	}
	for (uint64_t i = 0; i < r->npoints; i++)
		if (r->points[i].live > r->live_peak)
			r->live_peak = r->points[i].live;
	if (p->mode != REPLAY_EACH || !total)
		return;
	r->half = part_of(sums, total, 0.5, ns_per_tick);
	r->p99 = part_of(sums, total, 0.99, ns_per_tick);
	r->p999 = part_of(sums, total, 0.999, ns_per_tick);
	r->most = (uint64_t)((double)most * ns_per_tick);
}

static void *map(uint64_t n, uint64_t size)
{
	void *p = mmap(NULL, (n ? n : 1) * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct err *play_all(struct player *p)
{
	const uint64_t n = p->head->nlanes;
	uint64_t started = 1, ticks;
	int error = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		ticks = ticks_now();
		ticks = ticks_now() - ticks;
		p->tick_cost = !i || ticks < p->tick_cost ? ticks : p->tick_cost;
	}
	for (; started < n && !error; started += !error)
		error = pthread_create(&p->lanes[started].thread, NULL, play_lane,
				       &p->lanes[started]);
	if (error) /* the process ends, and with it the threads that wait */
		return err_errno(error, "thread %llu", (unsigned long long)started);
	p->base = resident(p);
	p->began = now_ns();
	ticks = ticks_now();
	__atomic_store_n(&p->go, 1, __ATOMIC_RELEASE);
	play_lane(&p->lanes[0]);
	for (uint64_t i = 1; i < n; i++)
		pthread_join(p->lanes[i].thread, NULL);
	ticks = ticks_now() - ticks;
	p->ret->wall = now_ns() - p->began;
	sum_up(p, ticks);
	return NULL;
}

struct err *replay_play(int fd, enum replay_mode mode, uint32_t flags, struct replay_result *ret)
{
	static struct player p;
	off_t size = lseek(fd, 0, SEEK_END);
	/* more is read as it is played */
	const bool fits = size > 0 && (uint64_t)size < meminfo_available() / 2;
	const struct replay_head *h = MAP_FAILED;
	void *(*volatile own)(size_t) = malloc;
	struct err *e = NULL;
	uint32_t *hists;
	Dl_info info;

	memset(ret, 0, sizeof(*ret));
	p = (struct player){ .mode = mode,
			     .flags = flags,
			     .ret = ret,
			     .statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
			     .looking = PTHREAD_MUTEX_INITIALIZER };
	if (size >= (off_t)sizeof(*h))
		h = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED | (fits ? MAP_POPULATE : 0), fd,
			 0);
	if (h == MAP_FAILED || p.statm < 0 ||
	    (uint64_t)size != sizeof(*h) + h->nchunks * REPLAY_CHUNK * sizeof(struct replay_op))
		return err_new(EINVAL, "the operations are not there");
	p.head = h;
	p.ops = (const struct replay_op *)(h + 1);
	p.slots = map(h->nslots, sizeof(*p.slots));
	p.sizes =
		map(mode == REPLAY_SPACE || flags & REPLAY_TOUCH ? h->nslots : 0, sizeof(*p.sizes));
	p.lanes = map(h->nlanes, sizeof(*p.lanes));
	hists = map(mode == REPLAY_EACH ? h->nlanes : 0, HIST * sizeof(*hists));
	if (!p.slots || !p.sizes || !p.lanes || !hists)
		return err_errno(errno, "no memory for %llu slots", (unsigned long long)h->nslots);
	for (uint32_t i = 0; i < h->nlanes; i++) {
		p.lanes[i].p = &p;
		p.lanes[i].number = i;
		p.lanes[i].hist = mode == REPLAY_EACH ? hists + (size_t)i * HIST : NULL;
	}
	if (dladdr((void *)(uintptr_t)own, &info) && info.dli_fname)
		snprintf(ret->allocator, sizeof(ret->allocator), "%s", info.dli_fname);
	if (h->nlanes)
		e = play_all(&p);
	close(p.statm);
	return e;
}
