/* The blocks of all allocators in one table, by which words are looked up. */
#include <errno.h>

#include "base/meminfo.h"
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum { AREA_BYTES_PER_TABLE_BYTE = 16 * 64 / 12, REMARKS_MAX = 16 };

void heap_remark(struct leaks_heap *h, char *text)
{
	struct leaks *l = h->l;

	l->torn = true;
	if (l->remarks.n < REMARKS_MAX)
		vec_push(&l->remarks, arena_strdup(&l->arena, text));
	free(text);
}

int ranges_by_start(const void *a, const void *b)
{
	const struct space_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int areas_by_start(const void *a, const void *b)
{
	const struct leaks_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Drops areas that overlap another: forged arenas can make such. */
static void sort_areas(struct leaks_heap *h)
{
	uint32_t kept = 0;

	if (h->areas.n)
		qsort(h->areas.v, h->areas.n, sizeof(*h->areas.v), areas_by_start);
	for (uint32_t i = 0; i < h->areas.n; i++)
		if (!kept || h->areas.v[kept - 1].end <= h->areas.v[i].start) {
			h->areas.v[kept++] = h->areas.v[i];
		} else {
			heap_remark(h, xasprintf("two heaps overlap at 0x%llx",
						 (unsigned long long)h->areas.v[i].start));
			for (uint32_t k = 0; k < h->areas.v[i].n; k++)
				h->chunks.v[h->areas.v[i].first + k].bits |= CHUNK_FREE;
		}
	h->areas.n = kept;
}

/* Returns an error when the tables of heap_index() need more memory than there is: a heap can have
 * a chunk of terabytes that was never touched. */
static struct err *check_span(const struct leaks_heap *h)
{
	const uint64_t room = meminfo_available();
	uint64_t span = 0;

	for (uint32_t i = 0; i < h->areas.n; i++)
		if (h->areas.v[i].n != 1 && !h->areas.v[i].each)
			span += h->areas.v[i].end - h->areas.v[i].start;
	return !room || span / AREA_BYTES_PER_TABLE_BYTE <= room / 2
		       ? NULL
		       : err_new(ENOMEM,
				 "its heap has a span of %llu MB, which is too many for this machine",
				 (unsigned long long)(span >> 20));
}

struct err *heap_find(const struct memory_copy *c, struct leaks_heap *h)
{
	bool any = false;
	struct err *e = NULL;

	/* A block's beginning is in memory that was touched. Forged lists can lead to the same
	 * chunks again and again. */
	for (uint32_t i = 0; i < c->runs.n; i++)
		h->most += (c->runs.v[i].end - c->runs.v[i].start) / BLOCK_MIN;
	any |= heap_find_mimalloc(c, h);
	any |= heap_find_jemalloc(c, h);
	any |= heap_find_tcmalloc(c, h);
	/* last: it takes no mappings that others have */
	any |= heap_find_glibc(c, h);
	if (!any)
		e = err_new(ENOENT,
			    "it has no heap that descry reads (those of glibc 2.27 and later, "
			    "jemalloc 5.3, mimalloc 2.0.9, gperftools 2.10), or has allocated "
			    "nothing yet");
	sort_areas(h);
	e = e ?: check_span(h);
	if (!e) {
		heap_index(h);
		heap_mark_free(c, h, h->glibc.v, h->glibc.n);
	}
	return e;
}

void heap_index(struct leaks_heap *h)
{
	h->lo = h->areas.n ? h->areas.v[0].start : 0;
	h->hi = h->areas.n ? vec_last(&h->areas)->end : 0;
	for (uint32_t i = 0; i < h->areas.n; i++) {
		struct leaks_area *a = &h->areas.v[i];
		uint64_t words = (a->end - a->start) / 16 / 64 + 1;
		uint32_t n = 0;

		if (a->n == 1 || a->each)
			continue;
		a->bits = xcalloc(words, sizeof(*a->bits));
		a->rank = xcalloc(words, sizeof(*a->rank));
		for (uint32_t k = 0; k < a->n; k++) {
			uint64_t bit = (h->chunks.v[a->first + k].addr - a->start) / 16;

			a->bits[bit / 64] |= 1ull << bit % 64;
		}
		for (uint64_t w = 0; w < words; w++) {
			a->rank[w] = n;
			n += (uint32_t)__builtin_popcountll(a->bits[w]);
		}
	}
}

void heap_fini(struct leaks_heap *h)
{
	for (uint32_t i = 0; i < h->areas.n; i++) {
		free(h->areas.v[i].bits);
		free(h->areas.v[i].rank);
	}
	vec_fini(&h->areas);
	vec_fini(&h->chunks);
	vec_fini(&h->own);
	vec_fini(&h->glibc);
	hash_fini(&h->seen);
}

/* Returns the index of the chunk that has this address, header or block. */
static uint32_t chunk_with(const struct leaks_heap *h, uint64_t addr)
{
	uint32_t i;
	const struct leaks_area *a;
	uint64_t bit;

	if (addr < h->lo || addr >= h->hi)
		return LEAKS_NONE;
	i = partition_point(h->areas.n, k, h->areas.v[k].end <= addr);
	a = &h->areas.v[i];
	if (addr < a->start)
		return LEAKS_NONE;
	if (a->each)
		return a->first + (uint32_t)((addr - a->start) / a->each);
	if (!a->bits)
		return a->first;
	bit = (addr - a->start) / 16;
	return a->first + a->rank[bit / 64] - 1 +
	       (uint32_t)__builtin_popcountll(a->bits[bit / 64] & (~0ull >> (63 - bit % 64)));
}

uint32_t heap_chunk(const struct leaks_heap *h, uint64_t addr)
{
	uint32_t i = chunk_with(h, addr);

	if (i != LEAKS_NONE &&
	    (h->chunks.v[i].bits & CHUNK_PLAIN || addr - h->chunks.v[i].addr >= CHUNK_HEADER))
		return i;
	/* A header's first word, also of the topmost chunk, is the last one of the block before. */
	i = chunk_with(h, addr - CHUNK_HEADER);
	if (i == LEAKS_NONE || h->chunks.v[i].bits & CHUNK_PLAIN ||
	    addr - h->chunks.v[i].addr >= CHUNK_HEADER + chunk_usable(&h->chunks.v[i]))
		return LEAKS_NONE;
	return i;
}

uint32_t heap_chunk_at(const struct leaks_heap *h, uint64_t addr)
{
	uint32_t i = chunk_with(h, addr);

	return i != LEAKS_NONE && h->chunks.v[i].addr == addr ? i : LEAKS_NONE;
}
