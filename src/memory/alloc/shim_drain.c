/* Takes the events of a recorded process out of its rings and puts them into its file. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/alloc/shim.h"

enum {
	PASS_NS = 200000000,   /* between passes of a process that allocates little */
	REVIEW_NS = 100000000, /* between looks for threads that have ended, */
	REVIEW_FROM = 64,      /* when there are so many rings in use */
	FLUSH_NS = 1000000000,
	TAKEN_AT_ONCE = 16 << 20, /* bytes of a process, until others have their turn */
	TAKEN_LATE = 1 << 20,     /* likewise, when there is no more time */
};

static void wake(struct wire_alloc *m)
{
	__atomic_fetch_add(&m->drained, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->waiting, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &m->drained, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void lose(struct alloc_shim *s, uint64_t count)
{
	struct alloc_event e = { .op = ALLOC_LOST, .size = count };

	if (!count)
		return;
	s->sum.lost += count;
	e.time = ticks_ns(&s->clock, ticks_now() - s->clock.ticks);
	alloc_write(s->writer, &e);
}

/* Reads bytes of a ring. Not by the mapping, where a load from a page that no thread has written
 * makes the page, which counts as this process's: a ring may say that it is full. */
static bool read_ring(const struct alloc_shim *s, uint32_t i, uint64_t at, uint8_t *to, uint64_t n)
{
	const uint64_t from = WIRE_ALLOC_HEAD + (uint64_t)i * WIRE_ALLOC_RING + at;

	return pread(s->memory_fd, to, n, (off_t)from) == (ssize_t)n;
}

/* Copies what a ring has to the file. Returns the bytes that there were. */
static uint64_t drain_ring(struct alloc_shim *s, uint32_t i)
{
	struct wire_alloc_ring *r = &s->memory->rings[i];
	struct alloc_shim_ring *own = &s->rings[i];
	uint64_t head = own->head;
	uint64_t lost = __atomic_load_n(&r->lost, __ATOMIC_RELAXED);
	uint64_t n = WIRE_ALLOC_POSITION(head - own->tail), at = own->tail % WIRE_ALLOC_RING, part;
	uint32_t count = (WIRE_ALLOC_COUNT(head) - own->count) & 0xffffff;

	if (lost != own->lost) {
		lose(s, lost - own->lost);
		own->lost = lost;
	}
	if (!n || own->broken)
		return 0;
	part = n < WIRE_ALLOC_RING - at ? n : WIRE_ALLOC_RING - at;
	if (n > WIRE_ALLOC_RING || count > n || !read_ring(s, i, at, s->buffer, part) ||
	    !read_ring(s, i, 0, s->buffer + part, n - part)) {
		own->broken = true;
		lose(s, 1);
		return 0;
	}
	alloc_writer_chunk(s->writer,
			   &(struct alloc_chunk){ i, own->tail, s->sync, s->buffer, (uint32_t)n },
			   count);
	own->tail += n;
	own->count = WIRE_ALLOC_COUNT(head);
	__atomic_store_n(&r->tail, own->tail, __ATOMIC_RELEASE);
	return n;
}

/* An event that a pass does not find was published after the pass began, and a thread publishes an
 * event before its block can be known to another thread. So no event up to the ticks of the pass's
 * beginning depends on it, but for those whose ticks were read ahead, which the reader holds. The
 * ticks are read twice: before the rings, and by the next pass. Returns false when nodes are left;
 * then events stay where they are, if they are to wait. */
static bool drain_begin(struct alloc_shim *s, bool wait)
{
	bool all = true;

	/* Another event may have the tick of this moment. */
	s->began = (ticks_now() >> WIRE_ALLOC_TICK) - 1;
	s->any = false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS; i++)
		s->rings[i].head = __atomic_load_n(&s->memory->rings[i].head, __ATOMIC_ACQUIRE);
	if (s->stacks)
		all = shim_stacks_write(s->stacks, s->writer);
	return all || !wait;
}

static void drain_end(struct alloc_shim *s)
{
	uint64_t unheard = __atomic_load_n(&s->memory->unheard, __ATOMIC_RELAXED);

	if (unheard != s->unheard) {
		lose(s, unheard - s->unheard);
		s->unheard = unheard;
	}
	if (s->any)
		s->sync = s->began;
	s->next = 0;
	s->passed = now_ns();
	if (alloc_writer_failed(s->writer))
		__atomic_store_n(&s->memory->done, 1, __ATOMIC_RELEASE);
	if (s->passed - s->flushed > FLUSH_NS) {
		alloc_writer_flush(s->writer);
		s->flushed = s->passed;
	}
}

/* Goes on with a pass, and takes not much more than `most` bytes. Returns false when some are
 * left. */
static bool drain_some(struct alloc_shim *s, uint64_t most)
{
	uint64_t taken = 0, n;

	for (; s->next < WIRE_ALLOC_RINGS && taken < most; s->next++) {
		n = drain_ring(s, s->next);
		if (n)
			wake(s->memory);
		taken += n;
		s->any |= n != 0;
	}
	if (s->next < WIRE_ALLOC_RINGS)
		return false;
	drain_end(s);
	return true;
}

/* Counts what a pass has left in the rings as lost. */
static void drain_drop(struct alloc_shim *s)
{
	uint64_t count = 0;

	for (uint32_t i = s->next; i < WIRE_ALLOC_RINGS; i++)
		if (!s->rings[i].broken)
			count += (WIRE_ALLOC_COUNT(s->rings[i].head) - s->rings[i].count) &
				 0xffffff;
	lose(s, count);
	drain_end(s);
}

/* Frees the rings of threads that have ended. */
static void review(struct alloc_shim *s)
{
	uint32_t owned = 0;

	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS; i++)
		owned += (uint32_t)__atomic_load_n(&s->memory->rings[i].owner, __ATOMIC_RELAXED) !=
			 0;
	s->reviewed = now_ns();
	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS && owned >= REVIEW_FROM; i++) {
		uint64_t *owner = &s->memory->rings[i].owner;
		uint64_t old = __atomic_load_n(owner, __ATOMIC_ACQUIRE);

		/* not by /proc, where hidepid hides a command that is not dumpable */
		/* A new thread of the same id takes the ring over, and so changes the number. */
		if ((uint32_t)old && syscall(SYS_tgkill, s->sum.pid, (uint32_t)old, 0) &&
		    errno == ESRCH)
			__atomic_compare_exchange_n(owner, &old, ((old >> 32) + 1) << 32, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

bool alloc_shim_pass(struct alloc_shim *s, bool rung)
{
	bool done = true;

	if (s->next || rung || now_ns() - s->passed > PASS_NS)
		done = (s->next || drain_begin(s, true)) && drain_some(s, TAKEN_AT_ONCE);
	if (now_ns() - s->reviewed > REVIEW_NS)
		review(s);
	return done;
}

void alloc_shim_end(struct alloc_shim *s, uint64_t until)
{
	struct alloc_shim_sum *sum = &s->sum;
	const struct wire_alloc *m = s->memory;

	__atomic_store_n(&s->memory->done, 1, __ATOMIC_RELEASE);
	while (s->next && now_ns() < until)
		drain_some(s, TAKEN_AT_ONCE);
	if (s->next)
		drain_drop(s);
	sum->late = !drain_begin(s, true);
	if (!drain_some(s, now_ns() < until ? UINT64_MAX : TAKEN_LATE))
		drain_drop(s);
	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS && s->stacks; i++) {
		sum->early += __atomic_load_n(&m->rings[i].early, __ATOMIC_RELAXED);
		sum->bare += __atomic_load_n(&m->rings[i].bare, __ATOMIC_RELAXED);
	}
	sum->runs = __atomic_load_n(&m->hello, __ATOMIC_ACQUIRE) == 1;
	sum->own = __atomic_load_n(&m->own, __ATOMIC_RELAXED) != 0;
	sum->forbidden = __atomic_load_n(&m->forbidden, __ATOMIC_RELAXED) != 0;
	sum->no_stacks = __atomic_load_n(&m->no_stacks, __ATOMIC_RELAXED) != 0;
	sum->no_names = __atomic_load_n(&m->names_gave_up, __ATOMIC_RELAXED) != 0;
	sum->events = alloc_writer_events(s->writer);
}
