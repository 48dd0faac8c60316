/* Finds the heaps of glibc's malloc(3), by their own structure: most C libraries are stripped.
 *
 *	main arena     a struct malloc_state in the C library's data. The bins that are empty point to
 *	               themselves, which nothing else does 127 times in a row.
 *	its chunks     from (end of the topmost chunk - system_mem) to the topmost chunk
 *	other arenas   a list from the main arena. Each lies in a heap of its own, which begins at a
 *	               multiple of 64 MB with {arena, heap before, size}.
 *	mapped chunks  mappings of their own, with the bit IS_MMAPPED: at the first page's beginning
 *
 * A chunk's header is {size of the chunk before, if that is free; size | flags}. Bit 0 of the flags
 * says that the chunk before is in use. */
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum {
	HEAP_ALIGN = 64 << 20,
	HEAPS_MAX = 1 << 16, /* of an arena */
	ARENAS_MAX = 4096,
	MAIN_ARENAS_MAX = 16, /* C libraries in one process (dlmopen(3)) */
	STARTS_MAX = 1 << 16, /* places where a chain is searched */
	STEPS_MAX = 1 << 27,  /* chunks that are looked at by such searches, in all */
	SHORT_CHAIN = 16,     /* fewer chunks before a break say nothing */
	PREV_INUSE = 1,
	IS_MMAPPED = 2,
	SIZE_FLAGS = 7,
};

enum chain_end { CHAIN_TOP, CHAIN_FENCE, CHAIN_BROKEN };

/* A walk from chunk to chunk. */
struct chain {
	const struct memory_region *region;
	uint64_t start, top, end; /* end: no chunk reaches over it */
	uint64_t at;              /* out: the topmost chunk, the fence or the damage */
	uint32_t n;               /* out: chunks */
};

/* Walks a chain. Adds its chunks when `add`. */
static enum chain_end walk(struct leaks_heap *h, struct chain *c, bool add)
{
	const struct memory_region *r = c->region;
	uint64_t last_size = 0;

	c->n = 0;
	for (c->at = c->start; c->at + CHUNK_HEADER <= c->end && c->at >= c->start;) {
		uint64_t field = memory_word(r, c->at + MEMORY_WORD), size = field & ~SIZE_FLAGS;
		bool before_used = field & PREV_INUSE;

		if (c->n && !before_used) {
			if (memory_word(r, c->at) != last_size)
				return CHAIN_BROKEN;
			if (add)
				vec_last(&h->chunks)->bits |= CHUNK_FREE;
		}
		if (c->at == c->top)
			return CHAIN_TOP;
		if (size == CHUNK_HEADER)
			return CHAIN_FENCE;
		if (size < CHUNK_MIN || size % 16 || size > c->end - c->at ||
		    (field & IS_MMAPPED) ||
		    (c->at < c->top && size > c->top - c->at && c->top < c->end))
			return CHAIN_BROKEN;
		if (add && h->chunks.n >= h->most)
			return CHAIN_BROKEN;
		if (add)
			vec_push(&h->chunks, (struct leaks_chunk){ c->at, size });
		c->n++;
		c->at += size;
		last_size = size;
	}
	return c->at == c->end ? CHAIN_FENCE : CHAIN_BROKEN;
}

/* Adds the chunks of a chain as an area. */
static enum chain_end add_area(struct leaks_heap *h, struct chain *c)
{
	uint32_t first = h->chunks.n;
	enum chain_end end = walk(h, c, true);

	if (c->n)
		vec_push(&h->areas, (struct leaks_area){ .start = c->start,
							 .end = c->at,
							 .region = c->region,
							 .first = first,
							 .n = c->n });
	return end;
}

/* --- arenas --- */

/* The bins of an arena are lists, linked through memory that is laid out as their heads. */
static bool is_bin(const struct memory_copy *copy, const struct memory_region *r, uint64_t arena,
		   uint32_t i, bool *ret_empty)
{
	uint64_t head = arena + ARENA_BINS - CHUNK_HEADER + 16ull * i;
	uint64_t fd = memory_word(r, head + CHUNK_HEADER);
	uint64_t bk = memory_word(r, head + CHUNK_HEADER + MEMORY_WORD);
	const void *first;

	*ret_empty = fd == head && bk == head;
	if (*ret_empty)
		return true;
	if (fd == head || bk == head || fd % 16 || bk % 16)
		return false;
	first = memory_at(copy, fd, CHUNK_MIN);
	return first && memory_at(copy, bk, CHUNK_MIN) &&
	       !memcmp((const uint8_t *)first + 24, &head, sizeof(head));
}

static bool is_arena(const struct memory_copy *copy, const struct memory_region *r, uint64_t arena)
{
	enum { QUICK = 4 };
	uint64_t top, mem, most;
	uint32_t empty = 0;
	bool is_empty;

	if (arena % MEMORY_WORD || arena < r->start || r->end - arena < ARENA_SIZE)
		return false;
	/* The bins of the largest sizes are nearly always empty. */
	for (uint32_t i = ARENA_NBINS - QUICK; i < ARENA_NBINS; i++)
		if (is_bin(copy, r, arena, i, &is_empty))
			empty += is_empty;
	if (!empty)
		return false;
	for (uint32_t i = 0; i < ARENA_NBINS; i++) {
		/* Bin 0 is none; the list of unsorted chunks is i = 0, as bin 1. */
		if (!is_bin(copy, r, arena, i, &is_empty))
			return false;
	}
	top = memory_word(r, arena + ARENA_TOP);
	mem = memory_word(r, arena + ARENA_SYSTEM_MEM);
	most = memory_word(r, arena + ARENA_MAX_SYSTEM_MEM);
	return top % 8 == 0 && mem <= most && memory_word(r, arena + ARENA_NEXT);
}

/* Finds the main arenas: in regions that map files, as the data of programs and libraries does. */
static void find_main(const struct memory_copy *c, memory_word_vec *ret)
{
	for (uint32_t i = 0, k = 0; i < c->runs.n; i++) {
		const struct space_range *run = &c->runs.v[i];
		const struct memory_region *r;
		uint64_t at = round_up(run->start, 32);

		while (c->regions.v[k].end <= run->start)
			k++;
		r = &c->regions.v[k];
		if (!r->file || r->shared)
			continue;
		for (; at < run->end && r->end - at >= ARENA_SIZE && ret->n < MAIN_ARENAS_MAX;
		     at += 32)
			if (is_arena(c, r, at)) {
				vec_push(ret, at);
				at = round_up(at + ARENA_SIZE, 32) - 32;
			}
	}
}

/* Adds the arenas of the list that begins at a main arena. */
static void follow_list(const struct memory_copy *c, uint64_t first, memory_word_vec *ret)
{
	uint64_t at = first;

	for (uint32_t i = 0; i < ARENAS_MAX && ret->n < ARENAS_MAX; i++) {
		const struct memory_region *r = memory_region_at(c, at);

		if (!r || !is_arena(c, r, at))
			return;
		vec_push(ret, at);
		at = memory_word(r, at + ARENA_NEXT);
		if (at == first)
			return;
	}
}

/* --- the main arena's chunks --- */

/* Searches the place from `from` on where a chain begins that ends as it should. */
static bool search_start(struct leaks_heap *h, struct chain *c, uint64_t from)
{
	for (uint32_t i = 0; i < STARTS_MAX && from < c->end && h->steps < STEPS_MAX;
	     i++, from += 16) {
		enum chain_end end;

		c->start = from;
		end = walk(h, c, false);
		h->steps += c->n + 1;
		if (c->n && end != CHAIN_BROKEN)
			return true;
	}
	return false;
}

static void add_main(const struct memory_copy *copy, struct leaks_heap *h, uint64_t arena)
{
	const struct memory_region *r = memory_region_at(copy, arena);
	uint64_t top = memory_word(r, arena + ARENA_TOP), size, start, at;
	uint64_t mem = memory_word(r, arena + ARENA_SYSTEM_MEM);
	struct chain c;

	if (!mem) /* nothing is allocated yet: the topmost chunk is the arena itself */
		return;
	r = memory_region_at(copy, top);
	if (!r || top % 16 || r->end - top < CHUNK_HEADER) {
		heap_remark(
			h,
			xasprintf("the main arena's topmost chunk is at 0x%llx, where no memory is",
				  (unsigned long long)top));
		return;
	}
	size = memory_word(r, top + MEMORY_WORD) & ~SIZE_FLAGS;
	if (size > r->end - top) {
		heap_remark(
			h, xasprintf("the main arena's topmost chunk, at 0x%llx, has a size beyond "
				     "its memory: 0x%llx",
				     (unsigned long long)top, (unsigned long long)size));
		return;
	}
	start = top + size - r->start >= mem ? round_up(top + size - mem, 16)
					     : round_up(r->start, 16);
	vec_push(&h->own, (struct space_range){ top, top + size });
	c = (struct chain){ .region = r, .start = start, .top = top, .end = top + CHUNK_HEADER };
	for (at = start;;) {
		enum chain_end end;

		c.start = at;
		end = walk(h, &c, false);
		/* Memory that others took by sbrk(2) lies before or between the chunks. */
		if (end == CHAIN_BROKEN && c.n < SHORT_CHAIN)
			if (!search_start(h, &c, at))
				c.start = at;
		end = add_area(h, &c);
		if (end == CHAIN_TOP)
			return;
		if (end == CHAIN_BROKEN || c.at + 2 * CHUNK_HEADER >= top)
			break;
		at = c.at + CHUNK_HEADER;
	}
	heap_remark(h,
		    xasprintf("the main arena's chunks end at 0x%llx: the header there is damaged, "
			      "or was being written",
			      (unsigned long long)c.at));
}

/* --- the other arenas' chunks --- */

static void add_heaps(const struct memory_copy *copy, struct leaks_heap *h, uint64_t arena)
{
	const uint64_t mask = ~(uint64_t)(HEAP_ALIGN - 1), head = arena - (arena & mask);
	const struct memory_region *r = memory_region_at(copy, arena);
	uint64_t top = memory_word(r, arena + ARENA_TOP), heap = top & mask, size;

	for (uint32_t i = 0; heap && i < HEAPS_MAX; i++, heap = memory_word(r, heap + 8)) {
		struct chain c = { .top = top };
		enum chain_end end;
		bool is_new;

		hash_put(&h->seen, &heap, sizeof(heap), &is_new);
		if (!is_new)
			return; /* a circle */
		r = memory_region_at(copy, heap);
		/* Heaps that are not at multiples could overlap, thousands in the same memory. */
		if (!r || heap % HEAP_ALIGN || r->end - heap < MEMORY_PAGE ||
		    memory_word(r, heap) != arena) {
			heap_remark(h,
				    xasprintf("the arena at 0x%llx has no heap at 0x%llx",
					      (unsigned long long)arena, (unsigned long long)heap));
			return;
		}
		size = memory_word(r, heap + 16);
		if (size > r->end - heap || size > HEAP_ALIGN)
			size = r->end - heap < HEAP_ALIGN ? r->end - heap : HEAP_ALIGN;
		vec_push(&h->own, (struct space_range){ heap, heap + size });
		c.region = r;
		c.start = round_up(heap == (arena & mask) ? arena + ARENA_SIZE : heap + head, 16);
		c.end = heap + size;
		end = add_area(h, &c);
		if (end == CHAIN_BROKEN || (end == CHAIN_FENCE && heap == (top & mask)))
			heap_remark(
				h, xasprintf("the chunks of the arena at 0x%llx end at 0x%llx: the "
					     "header there is damaged, or was being written",
					     (unsigned long long)arena, (unsigned long long)c.at));
	}
}

/* --- chunks that are mappings --- */

/* Returns the size of the mapped chunk that begins at addr and whose mapping begins at `start`, or
 * 0. */
static uint64_t mapped_size(const struct memory_region *r, uint64_t start, uint64_t addr)
{
	uint64_t before, field, size;

	if (r->end - addr < CHUNK_MIN)
		return 0;
	before = memory_word(r, addr);
	field = memory_word(r, addr + MEMORY_WORD);
	size = field & ~SIZE_FLAGS;
	if ((field & SIZE_FLAGS) != IS_MMAPPED || before != addr - start || size % 16 ||
	    size < CHUNK_MIN || size > r->end - addr || (before + size) % MEMORY_PAGE)
		return 0;
	return size;
}

/* memalign(3) moves a chunk so that its block lies at a multiple, and leaves the first header as it
 * is. */
static uint64_t find_mapped(const struct memory_region *r, uint64_t page, uint64_t *ret_addr)
{
	uint64_t whole = mapped_size(r, page, page);

	*ret_addr = page;
	for (uint64_t align = CHUNK_MIN; align < whole; align *= 2)
		for (int more = 0; more < 2; more++) {
			uint64_t at = round_up(page + CHUNK_HEADER + 1, align) + more * align -
				      CHUNK_HEADER;

			if (at - page < whole && mapped_size(r, page, at) == whole - (at - page)) {
				*ret_addr = at;
				return whole - (at - page);
			}
		}
	return whole;
}

/* Returns the memory that arenas have, sorted. */
static space_range_vec arenas_memory(const struct leaks_heap *h)
{
	space_range_vec v = { 0 };

	for (uint32_t i = 0; i < h->own.n; i++)
		vec_push(&v, h->own.v[i]);
	for (uint32_t i = 0; i < h->areas.n; i++)
		vec_push(&v, (struct space_range){ h->areas.v[i].start, h->areas.v[i].end });
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), ranges_by_start);
	return v;
}

static void add_mapped(const struct memory_copy *c, struct leaks_heap *h)
{
	space_range_vec skip = arenas_memory(h);
	uint64_t until = 0;

	for (uint32_t i = 0, k = 0, j = 0; i < c->runs.n; i++) {
		const struct space_range *run = &c->runs.v[i];
		const struct memory_region *r;
		uint64_t at = round_up(run->start, MEMORY_PAGE), addr, size;

		while (c->regions.v[k].end <= run->start)
			k++;
		r = &c->regions.v[k];
		at = at < until ? until : at;
		while (!r->shared && at < run->end && r->end - at >= MEMORY_PAGE) {
			while (j < skip.n && skip.v[j].end <= at)
				j++;
			if (j < skip.n && skip.v[j].start <= at) {
				at = round_up(skip.v[j].end, MEMORY_PAGE);
				continue;
			}
			size = find_mapped(r, at, &addr);
			if (!size) {
				at += MEMORY_PAGE;
				continue;
			}
			vec_push(&h->areas, (struct leaks_area){ .start = addr,
								 .end = addr + size,
								 .region = r,
								 .first = h->chunks.n,
								 .n = 1 });
			vec_push(&h->chunks, (struct leaks_chunk){ addr, size | CHUNK_MAPPED });
			h->maps++;
			until = at = round_up(addr + size, MEMORY_PAGE);
		}
	}
	vec_fini(&skip);
}

bool heap_find_glibc(const struct memory_copy *c, struct leaks_heap *h)
{
	memory_word_vec mains = { 0 };

	find_main(c, &mains);
	for (uint32_t i = 0; i < mains.n; i++) {
		uint32_t first = h->glibc.n;

		follow_list(c, mains.v[i], &h->glibc);
		if (h->glibc.n == first) /* its list is damaged */
			vec_push(&h->glibc, mains.v[i]);
		add_main(c, h, mains.v[i]);
		for (uint32_t k = first + 1; k < h->glibc.n; k++)
			add_heaps(c, h, h->glibc.v[k]);
	}
	for (uint32_t i = 0; i < h->glibc.n; i++)
		vec_push(&h->own,
			 (struct space_range){ h->glibc.v[i], h->glibc.v[i] + ARENA_SIZE });
	h->arenas = h->glibc.n;
	if (mains.n)
		add_mapped(c, h);
	vec_fini(&mains);
	return h->arenas;
}
