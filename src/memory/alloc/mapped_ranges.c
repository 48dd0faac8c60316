/* Ranges of mapped memory, in a sorted array. */
#include <string.h>

#include "memory/alloc/mapped_ranges.h"

/* Returns the number of ranges that end at or before an address. */
static uint32_t find_range(const struct mapped_ranges *m, uint64_t addr)
{
	uint32_t lo = 0, hi = m->v.n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (m->v.v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void insert_range(struct mapped_ranges *m, uint32_t at, struct mapped_range r)
{
	vec_add(&m->v);
	memmove(&m->v.v[at + 1], &m->v.v[at], (m->v.n - 1 - at) * sizeof(r));
	m->v.v[at] = r;
}

static uint64_t end_of(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

void mapped_ranges_take(struct mapped_ranges *m, uint64_t start, uint64_t size)
{
	uint64_t end = end_of(start, size);
	uint32_t at = find_range(m, start), gone = at;

	for (; gone < m->v.n && m->v.v[gone].start < end; gone++) {
		struct mapped_range *r = &m->v.v[gone], rest = *r;
		uint64_t from = r->start > start ? r->start : start;
		uint64_t to = r->end < end ? r->end : end;

		m->bytes[r->kind] -= to - from;
		if (r->start < start) { /* its beginning stays */
			r->end = start;
			at = gone + 1;
			if (rest.end <= end)
				continue;
			rest.start = end; /* so does its end */
			insert_range(m, at, rest);
			return;
		}
		if (r->end > end) {
			r->start = end;
			break;
		}
	}
	if (gone > at) {
		memmove(&m->v.v[at], &m->v.v[gone], (m->v.n - gone) * sizeof(m->v.v[0]));
		m->v.n -= gone - at;
	}
}

void mapped_ranges_put(struct mapped_ranges *m, uint64_t start, uint64_t size, uint8_t kind)
{
	struct mapped_range r = { start, end_of(start, size), kind };
	uint32_t at;

	mapped_ranges_take(m, start, size);
	if (r.end == r.start || kind >= MAPPED_N || m->v.n >= MAPPED_MAX)
		return;
	m->bytes[kind] += r.end - r.start;
	at = find_range(m, start);
	/* one range with its neighbour, as the kernel has it */
	if (at && m->v.v[at - 1].end == start && m->v.v[at - 1].kind == kind)
		m->v.v[at - 1].end = r.end;
	else
		insert_range(m, at, r);
}

void mapped_ranges_fini(struct mapped_ranges *m)
{
	vec_fini(&m->v);
}
