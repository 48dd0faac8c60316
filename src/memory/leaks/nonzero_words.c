/* Finds words that are not zero. A search for tables that are nearly empty looks at the same pages
 * again and again: it is remembered which of them hold nothing. */
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum { UNKNOWN, EMPTY, FULL };

void nonzero_init(struct nonzero *z, const struct memory_copy *c)
{
	uint64_t n = 0;

	*z = (struct nonzero){ .c = c };
	z->first = xcalloc(c->runs.n + 1ull, sizeof(*z->first));
	for (uint32_t i = 0; i < c->runs.n; i++) {
		z->first[i] = n;
		n += (c->runs.v[i].end - c->runs.v[i].start) / MEMORY_PAGE + 1;
	}
	z->pages = xcalloc(n + 1, 1);
}

void nonzero_fini(struct nonzero *z)
{
	free(z->first);
	free(z->pages);
}

/* Returns where the next word is, or `end`. The range is a part of one page of a run. */
static uint64_t search_page(struct nonzero *z, const struct memory_region *r, uint8_t *page,
			    uint64_t at, uint64_t end)
{
	z->steps++;
	if (*page == EMPTY)
		return end;
	if (*page == UNKNOWN) {
		const uint64_t start = at & ~(MEMORY_PAGE - 1ull);

		*page = FULL;
		if (start >= r->start && r->end - start >= MEMORY_PAGE) {
			const uint8_t *p = r->bytes + (start - r->start);

			if (!*p && !memcmp(p, p + 1, MEMORY_PAGE - 1))
				*page = EMPTY;
		}
		if (*page == EMPTY)
			return end;
	}
	for (; at < end; at += MEMORY_WORD, z->steps++)
		if (memory_word(r, at))
			return at;
	return end;
}

bool nonzero_next(struct nonzero *z, uint64_t from, uint64_t end, uint64_t *ret)
{
	const struct memory_copy *c = z->c;
	uint32_t i = partition_point(c->runs.n, k, c->runs.v[k].end <= from);

	for (; i < c->runs.n && c->runs.v[i].start < end; i++) {
		const struct space_range *run = &c->runs.v[i];
		const struct memory_region *r = memory_region_at(c, run->start);
		uint64_t at = run->start > from ? run->start : from;

		while (r && at < run->end && at < end) {
			uint64_t stop = (at & ~(MEMORY_PAGE - 1ull)) + MEMORY_PAGE;
			uint8_t *page = &z->pages[z->first[i] + (at - run->start) / MEMORY_PAGE];

			stop = stop < run->end ? stop : run->end;
			stop = stop < end ? stop : end;
			if (z->steps > NONZERO_STEPS_MAX)
				return false;
			*ret = search_page(z, r, page, at, stop);
			if (*ret < stop)
				return true;
			at = stop;
		}
	}
	return false;
}
