/* Pages of the shared memory that nobody needs any more, given back to the machine.
 *
 * A traced process can write every page of the shared file, and what a thread has written stays
 * when its process has ended. The size of the file bounds all of it (most_shared() in
 * inproc_area.c). Of that, these pages are punched out of the file here:
 *
 *	behind what a slot uses, up to the next slot	always
 *	slot 0: the tracer's lies elsewhere		always
 *	tables of the generation that was taken		of slots whose thread has left it
 *	rings, and both tables				of slots that have no thread, or one of a
 *							process that has ended
 *
 * A slot of the last kind is held meanwhile (its owner is the tracer), so that no thread takes it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/state/area.h"

enum {
	PAGE = 4096,
	EACH_NS = 1000000000,
	LARGE = 64 << 20, /* bytes: nobody looks before */
	TRACER = 1,       /* wire_thread.owner: number 0 in the list of processes */
};

/* The whole pages of [from, to), offsets from a slot's begin. */
static void punch(const struct inproc_engine *e, uint32_t slot, uint64_t from, uint64_t to)
{
	const uint64_t at = (uintptr_t)area_thread(e, slot) - (uintptr_t)e->common;
	const uint64_t lo = round_up(at + from, PAGE), hi = (at + to) / PAGE * PAGE;

	if (lo < hi)
		(void)fallocate(e->files.shared.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)lo, (off_t)(hi - lo));
}

static bool is_table(const struct wire_map *m)
{
	return m->kind == WIRE_MAP_AGG_ARRAY || m->kind == WIRE_MAP_AGG_HASH;
}

static void punch_tables(const struct inproc_engine *e, uint32_t slot, uint32_t gen)
{
	for (uint32_t i = 0; i < e->base.image->nmaps; i++) {
		const struct wire_map *m = &e->maps[i];
		const uint64_t at = m->base + gen * m->gen_stride;

		if (is_table(m))
			punch(e, slot, at, at + m->gen_stride);
	}
}

/* Passes over a record that its thread has not finished. The ring's first bytes stay. */
static void punch_ring(struct inproc_engine *e, uint32_t slot, const struct wire_map *m,
		       uint64_t *tail)
{
	struct wire_ring *r = (struct wire_ring *)((uintptr_t)area_thread(e, slot) + m->base);

	*tail = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&r->tail, *tail, __ATOMIC_RELEASE);
	punch(e, slot, m->base + sizeof(*r), m->base + sizeof(*r) + m->max_entries);
}

static void punch_rings(struct inproc_engine *e, uint32_t slot)
{
	const enum map_role order[] = { MAP_CONTROL, MAP_DATA }; /* as inproc_engine.tails */

	for (int k = 0; k < 2; k++) {
		const int map = image_find_map(e->base.image, order[k]);

		if (map >= 0)
			punch_ring(e, slot, &e->maps[map], &e->tails[k][slot]);
	}
}

/* Has nobody the slot any more? A thread that is taking one shows a number above all processes'. */
static bool is_left(const struct inproc_engine *e, uint32_t owner)
{
	return !owner ||
	       (owner > TRACER && owner <= WIRE_PROCESSES_MAX &&
		__atomic_load_n(&e->list[owner - 1].state, __ATOMIC_ACQUIRE) == WIRE_PROCESS_GONE);
}

static void reclaim_slot(struct inproc_engine *e, uint32_t slot)
{
	struct wire_thread *t = area_thread(e, slot);
	uint32_t owner = __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE);

	if (!is_left(e, owner) || e->aggs.late[slot] ||
	    !__atomic_compare_exchange_n(&t->owner, &owner, TRACER, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	punch_rings(e, slot);
	punch_tables(e, slot, 0);
	punch_tables(e, slot, 1);
	__atomic_store_n(&t->owner, owner, __ATOMIC_RELEASE);
}

static bool any_left(const struct inproc_engine *e)
{
	bool any = false;

	for (uint32_t i = 1; i < e->room.nthreads && !any; i++) {
		const uint32_t owner = __atomic_load_n(&area_thread(e, i)->owner, __ATOMIC_ACQUIRE);

		any = owner && is_left(e, owner);
	}
	return any;
}

void reclaim_look(struct inproc_engine *e)
{
	const uint64_t now = now_ns();
	struct stat st;

	if (now < e->room.reclaim_next)
		return;
	e->room.reclaim_next = now + EACH_NS;
	if (fstat(e->files.shared.fd, &st) || (uint64_t)st.st_blocks * 512 < LARGE)
		return;
	/* Once more, when threads have left both generations' tables behind. */
	aggs_flip(e);
	if (any_left(e))
		aggs_flip(e);
	punch(e, 0, PAGE, e->room.thread_stride);
	for (uint32_t i = 1; i < e->room.nthreads; i++) {
		punch(e, i, e->room.thread_used, e->room.thread_stride);
		if (!e->aggs.late[i])
			punch_tables(e, i, e->aggs.gen ^ 1);
		reclaim_slot(e, i);
	}
}
