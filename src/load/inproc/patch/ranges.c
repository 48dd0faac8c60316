/* Ranges of a process's addresses, and gaps between them. */
#include "load/inproc/patch/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/procdir.h"
#include "base/sorted.h"
#include "program/space/mapping.h"

enum {
	PAGE = 4096,
	REACH = 0x70000000, /* less than 2 GB, because island and text extend to both sides of it */
	HEAP_ROOM_BITS = 30, /* log2 of the bytes kept free behind what brk(2) has made */
};
#define FIRST_ADDRESS 0x10000ull
#define END_ADDRESS 0x7ffffffff000ull

/* Returns true for mappings that are not read: a read of a device's memory may have an effect, and
 * the kernel's own pages need not exist. */
static bool has_effects(const struct mapping *m)
{
	return (!strncmp(m->path, "/dev/", 5) && strncmp(m->path, "/dev/shm/", 9)) ||
	       !strncmp(m->path, "[v", 2);
}

struct err *ranges_read(pid_t pid, struct ranges *ret)
{
	struct mappings maps = { 0 };
	struct err *e = mappings_read(pid, &maps);

	ret->heap.lo = ret->heap.hi = procdir_heap(pid);
	for (uint32_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];

		vec_push(&ret->list,
			 (struct range){ m->start, m->end, m->read && !has_effects(m) });
		/* The heap begins in the middle of a page where the program's data ends there. */
		if (!strcmp(m->path, "[heap]") && m->end > ret->heap.hi)
			ret->heap.hi = m->end;
	}
	mappings_free(&maps);
	return e;
}

void ranges_fini(struct ranges *r)
{
	vec_fini(&r->list);
	vec_fini(&r->used);
}

bool ranges_has(const struct ranges *r, uint64_t addr)
{
	for (uint32_t i = 0; i < r->list.n; i++)
		if (addr >= r->list.v[i].lo && addr < r->list.v[i].hi)
			return true;
	return false;
}

bool ranges_free(const struct ranges *r, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < r->list.n; i++)
		if (r->list.v[i].lo < hi + PAGE && r->list.v[i].hi + PAGE > lo)
			return false;
	return true;
}

static void insert(range_vec *v, struct range r)
{
	const uint32_t at = partition_point(v->n, i, v->v[i].lo <= r.lo);

	(void)vec_add(v);
	memmove(v->v + at + 1, v->v + at, (v->n - 1 - at) * sizeof(r));
	v->v[at] = r;
}

void ranges_take(struct ranges *r, uint64_t lo, uint64_t hi)
{
	const struct range taken = { lo, hi, false };

	insert(&r->list, taken);
	if (r->searched)
		insert(&r->used, taken);
}

void ranges_avoid(struct ranges *r, uint64_t lo, uint64_t hi)
{
	vec_push(&r->used, ((struct range){ lo, hi, false }));
}

static int by_lo(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	return COMPARE(a->lo, b->lo);
}

/* A search, and its best place so far. */
struct gap_search {
	uint64_t lo, hi, size;
	uint64_t best, far;
};

/* Looks at a gap between two ranges in use. */
static void look(struct gap_search *s, uint64_t from, uint64_t to)
{
	uint64_t after, before;

	/* a page of distance on both sides, for mappings that grow or overrun */
	if (to <= from || to - from < s->size + 3 * PAGE)
		return;
	after = (from + PAGE - 1) / PAGE * PAGE + PAGE;
	before = (to - s->size) / PAGE * PAGE - PAGE;
	if (after >= s->hi && after + s->size - s->lo < s->far) {
		s->best = after;
		s->far = after + s->size - s->lo;
	}
	if (before + s->size <= s->lo && s->hi - before < s->far) {
		s->best = before;
		s->far = s->hi - before;
	}
}

/* Searches with `room` bytes behind the heap in use. */
static uint64_t find_gap(struct ranges *r, struct gap_search s, uint64_t room)
{
	const struct range heap = { r->heap.lo, r->heap.lo ? r->heap.hi + room : 0, false };
	uint64_t from = FIRST_ADDRESS;

	s.far = REACH;
	r->looks += r->used.n;
	for (uint32_t i = 0; i <= r->used.n; i++) {
		const uint64_t to = i < r->used.n ? r->used.v[i].lo : END_ADDRESS;

		if (heap.hi <= from || heap.lo >= to) {
			look(&s, from, to);
		} else {
			look(&s, from, heap.lo);
			look(&s, heap.hi, to);
		}
		if (i < r->used.n && r->used.v[i].hi > from)
			from = r->used.v[i].hi;
	}
	return s.best;
}

static void make_used(struct ranges *r)
{
	for (uint32_t i = 0; i < r->list.n; i++)
		vec_push(&r->used, r->list.v[i]);
	if (r->used.n)
		qsort(r->used.v, r->used.n, sizeof(*r->used.v), by_lo);
	r->searched = true;
}

uint64_t ranges_gap(struct ranges *r, uint64_t lo, uint64_t hi, uint64_t size)
{
	const struct gap_search s = { .lo = lo, .hi = hi, .size = size };
	int fits = -1, too_much = HEAP_ROOM_BITS; /* of the room's bits */
	uint64_t gap;

	if (!r->searched)
		make_used(r);
	gap = find_gap(r, s, 1ull << HEAP_ROOM_BITS);
	if (gap || !r->heap.lo)
		return gap;
	/* A place that leaves some room also leaves any smaller one. */
	while (too_much - fits > 1) {
		const int bits = (fits + too_much) / 2;
		const uint64_t found = find_gap(r, s, 1ull << bits);

		if (found) {
			gap = found;
			fits = bits;
		} else {
			too_much = bits;
		}
	}
	return gap;
}
