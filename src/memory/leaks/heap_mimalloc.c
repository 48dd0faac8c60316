/* Finds the heap of mimalloc 2.0.9, as its structures are without encoded lists (which
 * only its debug and secure versions have).
 *
 *	segment        at a multiple of 32 MB. Its header has an entry for each slice of 64 KB:
 *	page           the first entry of the slices of a page is the page: blocks of one size, of which
 *	               the first `capacity` have been made. Those that are free are in the lists `free`,
 *	               `local_free` and `thread_free`, linked by their first word.
 *	heap           has one more list, of blocks that other threads have freed.
 *
 * A header has a cookie: its address xor one number, the same for all segments. */
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum {
	SEGMENT = 32 << 20,
	SLICE = 64 << 10,
	ENTRIES_MAX = SEGMENT / SLICE,
	SLICES_MAX = 1 << 30, /* of a segment with one huge block */
	HEADS_MAX = 1 << 16,
	SMALL_OBJECT = 1024, /* blocks of up to this size begin PAGE_HEAD bytes after the page */
	PAGE_HEAD = 384,
	TORN = 2, /* blocks that a thread within malloc(3) or free(3) has on their way */

	/* mi_segment_t */
	SEGMENT_COOKIE = 216,
	SEGMENT_SLICES = 224,
	SEGMENT_INFO = 232,
	SEGMENT_KIND = 240,
	SEGMENT_ENTRIES = 248,
	SEGMENT_PAGES = 264,
	SEGMENT_HEADER = SEGMENT_PAGES + (ENTRIES_MAX + 1) * 80,

	/* mi_heap_t */
	HEAP_DELAYED = 2840,
};

/* mi_page_t */
struct mi_page {
	uint32_t slices, offset;
	uint8_t state, pad;
	uint16_t capacity, reserved;
	uint8_t flags, zero;
	uint64_t free;
	uint32_t used, size;
	uint64_t local_free, thread_free, heap, next, prev, padding;
};
_Static_assert(sizeof(struct mi_page) == 80, "an entry");

struct mimalloc {
	const struct memory_copy *c;
	struct leaks_heap *h;
	memory_word_vec heaps;
	uint64_t key;        /* address xor cookie, of all segments; 0: not known yet */
	uint32_t first_area; /* of h->areas */
	uint32_t damaged;    /* pages whose lists are not whole */
	uint64_t damage;     /* address of the first */
};

/* Returns true when a segment begins here. *ret_end: where it ends. */
static bool is_segment(const struct mimalloc *m, const struct memory_region *r, uint64_t at,
		       uint64_t *ret_end)
{
	const uint64_t huge = memory_word(r, at + SEGMENT_KIND) & UINT32_MAX;
	const uint64_t slices = memory_word(r, at + SEGMENT_SLICES);
	const uint64_t entries = memory_word(r, at + SEGMENT_ENTRIES);
	const uint64_t key = memory_word(r, at + SEGMENT_COOKIE) ^ at;
	struct mi_page first;

	memcpy(&first, r->bytes + (at + SEGMENT_PAGES - r->start), sizeof(first));
	if (huge > 1 || memory_word(r, at + SEGMENT_INFO) != 1 || first.slices != 1 ||
	    first.offset || first.size != SLICE || slices < 2 || slices > SLICES_MAX ||
	    (huge ? entries > ENTRIES_MAX : slices != ENTRIES_MAX || entries != ENTRIES_MAX) ||
	    !key || (m->key && key != m->key))
		return false;
	*ret_end = at + slices * SLICE;
	return true;
}

/* Marks the blocks of a list. Returns their number, or UINT32_MAX when the list is not whole. */
static uint32_t mark_list(struct mimalloc *m, const struct leaks_area *a, uint64_t block)
{
	uint32_t n = 0;

	while (block) {
		uint64_t i = block >= a->start ? (block - a->start) / a->each : a->n;
		struct leaks_chunk *c;

		if (i >= a->n || block != a->start + i * a->each)
			return UINT32_MAX;
		c = &m->h->chunks.v[a->first + i];
		if (c->bits & CHUNK_FREE)
			return UINT32_MAX;
		c->bits |= CHUNK_FREE;
		n++;
		block = memory_word(a->region, block);
	}
	return n;
}

/* The memory of a segment that has no page yet may not be accessible: its parts may lie in several
 * regions. */
static void add_page(struct mimalloc *m, uint64_t at, uint64_t end, const struct mi_page *p)
{
	const struct memory_region *r = memory_region_at(m->c, at);
	const uint64_t whole = end - at, shift = p->size <= SMALL_OBJECT ? PAGE_HEAD : 0;
	const uint64_t each = p->capacity == 1 && p->size > whole ? whole : p->size;
	struct leaks_area a = { .start = at + shift,
				.end = at + shift + each * p->capacity,
				.region = r,
				.first = m->h->chunks.n,
				.n = p->capacity,
				.each = each };
	uint32_t n, local;

	if (!p->capacity)
		return;
	if (!r || a.end > r->end || each < MEMORY_WORD || each % MEMORY_WORD ||
	    p->capacity > p->reserved || each * p->capacity > whole - shift ||
	    m->h->most - m->h->chunks.n < p->capacity) {
		m->damage = m->damaged++ ? m->damage : at;
		return;
	}
	for (uint32_t i = 0; i < a.n; i++)
		vec_push(&m->h->chunks,
			 (struct leaks_chunk){ a.start + i * each, each | CHUNK_PLAIN });
	vec_push(&m->h->areas, a);
	n = mark_list(m, &a, p->free);
	local = mark_list(m, &a, p->local_free);
	if (n == UINT32_MAX || local == UINT32_MAX ||
	    mark_list(m, &a, p->thread_free & ~3ull) == UINT32_MAX ||
	    n + local + p->used > a.n + TORN || n + local + p->used + TORN < a.n)
		m->damage = m->damaged++ ? m->damage : at;
	if (p->heap && m->heaps.n < HEADS_MAX && (!m->heaps.n || *vec_last(&m->heaps) != p->heap))
		vec_push(&m->heaps, p->heap);
}

static void add_segment(struct mimalloc *m, const struct memory_region *r, uint64_t at,
			uint64_t end)
{
	const uint32_t entries = (uint32_t)memory_word(r, at + SEGMENT_ENTRIES);
	const bool huge = memory_word(r, at + SEGMENT_KIND) & 1;

	for (uint32_t i = 1; i < entries;) {
		struct mi_page p;
		uint64_t begin = at + (uint64_t)i * SLICE, stop;

		memcpy(&p, r->bytes + (at + SEGMENT_PAGES + 80ull * i - r->start), sizeof(p));
		if (!p.slices || p.offset || (!huge && p.slices > entries - i)) {
			m->damage = m->damaged++ ? m->damage : begin;
			return;
		}
		stop = begin + (uint64_t)p.slices * SLICE;
		stop = stop < end ? stop : end;
		if (p.size)
			add_page(m, begin, stop, &p);
		i += p.slices;
	}
}

/* Marks the blocks that other threads have given back to a heap. They may be of any of its
 * pages. */
static void mark_delayed(struct mimalloc *m, uint64_t heap)
{
	const struct leaks_area *v = m->h->areas.v + m->first_area;
	const uint32_t areas = m->h->areas.n - m->first_area;
	const uint8_t *at = memory_at(m->c, heap + HEAP_DELAYED, MEMORY_WORD);
	uint64_t block = 0;

	if (at)
		memcpy(&block, at, sizeof(block));
	while (block) {
		uint32_t i = partition_point(areas, k, v[k].end <= block);
		uint64_t k = i < areas && v[i].start <= block ? (block - v[i].start) / v[i].each
							      : 0;
		struct leaks_chunk *c;

		if (i == areas || block != v[i].start + k * v[i].each)
			return;
		c = &m->h->chunks.v[v[i].first + k];
		if (c->bits & CHUNK_FREE)
			return;
		c->bits |= CHUNK_FREE;
		block = memory_word(v[i].region, block);
	}
}

bool heap_find_mimalloc(const struct memory_copy *c, struct leaks_heap *h)
{
	struct mimalloc m = { .c = c, .h = h, .first_area = h->areas.n };
	uint64_t end = 0;

	/* A header is in memory that was touched. All others are not looked at: a region can have a
	 * span of terabytes, and each look makes tables of pages. */
	for (uint32_t i = 0; i < c->runs.n; i++) {
		const struct space_range *run = &c->runs.v[i];
		const struct memory_region *r = memory_region_at(c, run->start);
		uint64_t at = round_up(run->start, SEGMENT);

		for (; r && at < run->end && r->end - at >= SEGMENT_HEADER; at += SEGMENT) {
			if (at < end || !is_segment(&m, r, at, &end))
				continue;
			m.key = memory_word(r, at + SEGMENT_COOKIE) ^ at;
			vec_push(&h->own, (struct space_range){ at, end });
			add_segment(&m, r, at, end);
		}
	}
	for (uint32_t i = 0; i < m.heaps.n; i++)
		mark_delayed(&m, m.heaps.v[i]);
	if (m.damaged)
		heap_remark(h, xasprintf("%u pages of mimalloc's are damaged, or were being "
					 "changed; the first is at 0x%llx",
					 m.damaged, (unsigned long long)m.damage));
	vec_fini(&m.heaps);
	return m.key;
}
