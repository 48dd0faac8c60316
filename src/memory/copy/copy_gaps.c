/* Cuts wide untouched parts out of the regions of a copy. A look at a page that was not touched
 * makes a page table of 4 KB for the 2 MB around it, which no limit counts, and a process can point
 * to each 2 MB of terabytes. Few programs have so many addresses: AddressSanitizer's shadow memory
 * is an example. To their reader, the parts that are cut out are not mapped. */
#include <stdlib.h>

#include "memory/copy/copy_private.h"

enum { GAP_MIN = 2 << 20 }; /* a smaller gap shares its table with touched pages */

static int widest_first(const void *a, const void *b)
{
	const struct space_range *p = a, *q = b;

	return COMPARE(q->end - q->start, p->end - p->start);
}

static void add_piece(memory_region_vec *to, const struct memory_region *of, uint64_t start,
		      uint64_t end)
{
	struct memory_region r = *of;

	r.start = start;
	r.end = end;
	if (start < end)
		vec_push(to, r);
}

/* gaps: by address. */
static void cut(struct memory_copy *c, const space_range_vec *gaps)
{
	memory_region_vec pieces = { 0 };
	uint32_t k = 0;

	for (uint32_t i = 0; i < c->regions.n; i++) {
		const struct memory_region *r = &c->regions.v[i];
		uint64_t at = r->start;

		for (; k < gaps->n && gaps->v[k].start < r->end; k++) {
			add_piece(&pieces, r, at, gaps->v[k].start);
			at = gaps->v[k].end;
		}
		add_piece(&pieces, r, at, r->end);
	}
	vec_fini(&c->regions);
	c->regions = pieces;
}

void copy_cut_gaps(struct memory_copy *c, const space_range_vec *runs, uint64_t most)
{
	space_range_vec all = { 0 }, gaps = { 0 };
	uint64_t n = 0;
	uint32_t cuts = 0;

	for (uint32_t i = 0; i < c->regions.n; i++) {
		const struct memory_region *r = &c->regions.v[i];

		all.n = 0;
		copy_list_gaps(runs, (struct space_range){ r->start, r->end }, &all);
		for (uint32_t k = 0; k < all.n; k++) {
			if (all.v[k].end - all.v[k].start < GAP_MIN)
				continue;
			n += all.v[k].end - all.v[k].start;
			if (!r->room.end)
				vec_push(&gaps, all.v[k]);
		}
	}
	vec_fini(&all);
	if (n > most && gaps.n) {
		qsort(gaps.v, gaps.n, sizeof(*gaps.v), widest_first);
		for (; cuts < gaps.n && n > most; cuts++)
			n -= gaps.v[cuts].end - gaps.v[cuts].start;
		gaps.n = cuts;
		qsort(gaps.v, gaps.n, sizeof(*gaps.v), copy_range_order);
		cut(c, &gaps);
	}
	vec_fini(&gaps);
}
