/* The memory that a copy is written to: huge pages where the program has touched nearly all, and
 * pages that are there before the program is stopped. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "base/limits.h"
#include "base/meminfo.h"
#include "memory/copy/copy_private.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	HUGE_PAGE = 2 << 20,
	ADVISED_MAX = 4096, /* each splits a mapping, of which a process may have 65,530 */
	TOUCHED_PARTS = 8,  /* untouched memory inside huge pages is at most such a part */
};

/* Address space for what a region grows by until the copy. It is a part of the region, because a
 * kernel that does not overcommit counts it as memory. */
static uint64_t room_slack(const struct memory_region *r)
{
	return (r->end - r->start) / 8;
}

struct memory_room {
	memory_region_vec regions;
	uint64_t populated;
	uint32_t advised;
};

/* Asks for huge pages in [start, end) of the region, where whole ones lie in it. */
static void room_advise(const struct memory_region *r, uint64_t start, uint64_t end,
			uint32_t *advised)
{
	start = (start + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1ull);
	end &= ~(HUGE_PAGE - 1ull);
	if (start < r->start || start >= end || *advised >= ADVISED_MAX)
		return;
	++*advised;
	/* a kernel without them has small ones */
	(void)!madvise(r->bytes + (start - r->start), end - start, MADV_HUGEPAGE);
}

bool copy_room_map(struct memory_region *r, uint64_t slack, const struct space_range *runs,
		   uint32_t n, uint32_t *advised)
{
	/* huge pages begin where those of the program would */
	const uint64_t align = r->end - r->start < HUGE_PAGE ? 0 : HUGE_PAGE;
	/* A core's segment may begin and end anywhere: its last word may lie behind it. */
	const uint64_t spare = (r->start | r->end) % MEMORY_WORD ? MEMORY_WORD : 0;
	const uint64_t size = r->end - r->start + slack + align + spare;
	struct space_range all = { 0 };
	uint8_t *p;

	limits_reserve((int64_t)size);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED) {
		limits_reserve(-(int64_t)size);
		return false;
	}
	r->room = (struct space_range){ (uintptr_t)p, (uintptr_t)p + size };
	r->bytes = p + (align ? (r->start - (uintptr_t)p) & (align - 1) : 0);
	for (uint32_t i = 0; i < n; i++) {
		if (runs[i].start - all.end <= (all.end - all.start) / TOUCHED_PARTS) {
			all.end = runs[i].end;
			continue;
		}
		room_advise(r, all.start, all.end, advised);
		all = runs[i];
	}
	room_advise(r, all.start, all.end, advised);
	return true;
}

void copy_room_unmap(struct memory_region *r)
{
	if (r->room.end && !munmap((void *)(uintptr_t)r->room.start, r->room.end - r->room.start))
		limits_reserve(-(int64_t)(r->room.end - r->room.start));
	r->room = (struct space_range){ 0 };
}

bool copy_room_take(struct memory_room *room, struct memory_region *r)
{
	uint32_t i = room ? partition_point(room->regions.n, k, room->regions.v[k].start < r->start)
			  : 0;
	struct memory_region *has;

	if (!room || i == room->regions.n)
		return false;
	has = &room->regions.v[i];
	if (has->start != r->start || !has->room.end ||
	    r->end - r->start > has->end - has->start + room_slack(has))
		return false;
	r->bytes = has->bytes;
	r->room = has->room;
	has->room = (struct space_range){ 0 };
	return true;
}

uint64_t copy_room_populated(const struct memory_room *room)
{
	return room ? room->populated : 0;
}

/* Makes the pages of a region's runs. */
static void room_populate(struct memory_room *room, struct memory_region *r,
			  const struct space_range *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!madvise(r->bytes + (runs[i].start - r->start), runs[i].end - runs[i].start,
			     MADV_POPULATE_WRITE))
			room->populated += runs[i].end - runs[i].start;
}

struct memory_room *memory_room_new(struct space *s)
{
	struct memory_room *room = xcalloc(1, sizeof(*room));
	const uint64_t available = meminfo_available();
	const struct mappings *maps = NULL;
	struct err *e = space_mappings(s, 0, &maps);
	space_range_vec runs = { 0 };
	uint64_t n = 0;

	if (!e)
		copy_list_regions(&room->regions, maps);
	for (uint32_t i = 0; !e && i < room->regions.n; i++)
		e = copy_resident(s, &room->regions.v[i],
				  (struct space_range){ room->regions.v[i].start,
							room->regions.v[i].end },
				  &runs);
	for (uint32_t i = 0; i < runs.n; i++)
		n += runs.v[i].end - runs.v[i].start;
	for (uint32_t i = 0, k = 0; !e && available && n < available / 2 && i < room->regions.n;
	     i++) {
		struct memory_region *r = &room->regions.v[i];
		uint32_t first = k;

		while (k < runs.n && runs.v[k].start < r->end)
			k++;
		if (k > first &&
		    copy_room_map(r, room_slack(r), runs.v + first, k - first, &room->advised))
			room_populate(room, r, runs.v + first, k - first);
	}
	err_free(e); /* memory_copy() meets it again, and returns it */
	vec_fini(&runs);
	return room;
}

void memory_room_free(struct memory_room *room)
{
	if (!room)
		return;
	for (uint32_t i = 0; i < room->regions.n; i++)
		copy_room_unmap(&room->regions.v[i]);
	vec_fini(&room->regions);
	free(room);
}
