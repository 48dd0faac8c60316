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

/* Copies what a ring has to the file. Returns true when there was something. */
static bool drain_ring(struct alloc_shim *s, uint32_t i)
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
		return false;
	if (n > WIRE_ALLOC_RING || count > n) {
		own->broken = true;
		lose(s, 1);
		return false;
	}
	part = n < WIRE_ALLOC_RING - at ? n : WIRE_ALLOC_RING - at;
	memcpy(s->buffer, s->data + (uint64_t)i * WIRE_ALLOC_RING + at, part);
	memcpy(s->buffer + part, s->data + (uint64_t)i * WIRE_ALLOC_RING, n - part);
	alloc_writer_chunk(s->writer,
			   &(struct alloc_chunk){ i, own->tail, s->sync, s->buffer, (uint32_t)n },
			   count);
	own->tail += n;
	own->count = WIRE_ALLOC_COUNT(head);
	__atomic_store_n(&r->tail, own->tail, __ATOMIC_RELEASE);
	return true;
}

/* An event that a pass does not find was published after the pass began, and a thread publishes an
 * event before its block can be known to another thread. So no event up to the ticks of the pass's
 * beginning depends on it, but for those whose ticks were read ahead, which the reader holds. The
 * ticks are read twice: before the rings, and by the next pass. Returns false when nodes are left;
 * then events stay where they are, if they are to wait. */
static bool drain(struct alloc_shim *s, bool wait)
{
	/* Another event may have the tick of this moment. */
	uint64_t began = (ticks_now() >> WIRE_ALLOC_TICK) - 1,
		 unheard = __atomic_load_n(&s->memory->unheard, __ATOMIC_RELAXED);
	bool any = false, all = true;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS; i++)
		s->rings[i].head = __atomic_load_n(&s->memory->rings[i].head, __ATOMIC_ACQUIRE);
	if (s->stacks)
		all = shim_stacks_write(s->stacks, s->writer);
	if (!all && wait)
		return false;
	for (uint32_t i = 0; i < WIRE_ALLOC_RINGS; i++) {
		if (!drain_ring(s, i))
			continue;
		any = true;
		wake(s->memory);
	}
	if (unheard != s->unheard) {
		lose(s, unheard - s->unheard);
		s->unheard = unheard;
	}
	if (any)
		s->sync = began;
	s->passed = now_ns();
	if (alloc_writer_failed(s->writer))
		__atomic_store_n(&s->memory->done, 1, __ATOMIC_RELEASE);
	if (s->passed - s->flushed > FLUSH_NS) {
		alloc_writer_flush(s->writer);
		s->flushed = s->passed;
	}
	return all;
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

	if (rung || now_ns() - s->passed > PASS_NS)
		done = drain(s, true);
	if (now_ns() - s->reviewed > REVIEW_NS)
		review(s);
	return done;
}

void alloc_shim_end(struct alloc_shim *s)
{
	struct alloc_shim_sum *sum = &s->sum;
	const struct wire_alloc *m = s->memory;

	__atomic_store_n(&s->memory->done, 1, __ATOMIC_RELEASE);
	sum->late = !drain(s, false);
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
