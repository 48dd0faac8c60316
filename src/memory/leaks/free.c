/* Free chunks that look as if they were in use: those of thread caches and of fast bins.
 *
 *	struct tcache_perthread_struct  { uint16_t counts[64]; void *entries[64]; }
 *
 * is a block of its own, of which only a thread-local variable without a name knows the address. So
 * each block of its size is tried: all its lists must hold blocks of the right sizes and counts.
 * The lists' pointers are stored xor (their own address >> 12) since glibc 2.32. */
#include "memory/leaks/leaks_private.h"

enum {
	BINS = 64,
	ENTRIES = BINS * 2,
	CACHE_USABLE = ENTRIES + BINS * 8 + 8, /* what a block of its size can hold */
	FAST_MAX = 1 << 24,                    /* chunks of a list */
	MANGLE_SHIFT = 12,
	LINKS_FIRST = 1 << 20,
	LINKS_EACH = 8,
};

typedef VEC(uint32_t) chunk_vec;

/* Each free chunk is in one list, which is followed at most four times. Forged caches can all have
 * the same lists. */
static bool too_many_links(const struct leaks_heap *h)
{
	return h->links > LINKS_FIRST + LINKS_EACH * (uint64_t)h->chunks.n;
}

/* Follows a list of chunks. first: address of its first block. slot: offset of the link from the
 * block. size: that each chunk has, 0: any. Returns true when it ends as a list does. */
static bool follow(const struct memory_copy *c, struct leaks_heap *h, uint64_t first, uint64_t size,
		   uint32_t most, bool mangled, chunk_vec *ret)
{
	ret->n = 0;
	for (uint64_t at = first; at; ret->n++) {
		uint32_t i = at % 16 ? LEAKS_NONE : heap_chunk_at(h, at - CHUNK_HEADER);
		const void *link = memory_at(c, at, sizeof(at));
		uint64_t next;

		h->links++;
		if (i == LEAKS_NONE || !link || chunk_size(&h->chunks.v[i]) != size ||
		    ret->n >= most || too_many_links(h))
			return false;
		vec_reserve(ret, 1);
		ret->v[ret->n] = i;
		memcpy(&next, link, sizeof(next));
		at = mangled ? next ^ at >> MANGLE_SHIFT : next;
	}
	return true;
}

static bool follow_any(const struct memory_copy *c, struct leaks_heap *h, uint64_t first,
		       uint64_t size, uint32_t most, chunk_vec *ret)
{
	return follow(c, h, first, size, most, true, ret) ||
	       follow(c, h, first, size, most, false, ret);
}

static void mark_all(struct leaks_heap *h, const chunk_vec *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		h->chunks.v[v->v[i]].bits |= CHUNK_FREE;
}

/* Returns true when the block is a thread's cache, all of whose lists are whole; or marks its
 * chunks. A thread that stops within malloc(3) may have counted a chunk that is no longer, or not
 * yet, in the list. */
static bool take_cache(const struct memory_copy *c, struct leaks_heap *h, uint64_t addr, bool mark,
		       chunk_vec *list)
{
	const uint8_t *p = memory_at(c, addr, ENTRIES + BINS * 8);
	bool any = false;

	for (uint32_t i = 0; p && i < BINS; i++) {
		uint64_t first;
		uint16_t count;

		memcpy(&count, p + 2 * i, sizeof(count));
		memcpy(&first, p + ENTRIES + 8 * i, sizeof(first));
		any |= first != 0;
		if (!first && count <= 1)
			continue;
		if (!first || !follow_any(c, h, first, CHUNK_MIN + 16ull * i, count + 1u, list) ||
		    list->n + 1 < count)
			return false;
		if (mark)
			mark_all(h, list);
	}
	return any;
}

static void mark_fast(const struct memory_copy *c, struct leaks_heap *h, uint64_t arena,
		      chunk_vec *list)
{
	const struct memory_region *r = memory_region_at(c, arena);

	for (uint32_t i = 0; i < ARENA_NFASTBINS; i++) {
		uint64_t first = memory_word(r, arena + ARENA_FASTBINS + 8ull * i);

		/* Fast bins link chunks, not blocks. The link lies where the block begins. */
		list->n = 0;
		for (uint64_t at = first; at && list->n < FAST_MAX;) {
			uint32_t k = at % 16 ? LEAKS_NONE : heap_chunk_at(h, at);
			const void *link = memory_at(c, at + CHUNK_HEADER, sizeof(at));
			uint64_t next, plain;

			if (k == LEAKS_NONE || !link || (h->chunks.v[k].bits & CHUNK_FREE))
				break;
			h->chunks.v[k].bits |= CHUNK_FREE;
			list->n++;
			memcpy(&next, link, sizeof(next));
			plain = next ^ (at + CHUNK_HEADER) >> MANGLE_SHIFT;
			at = !plain || (plain % 16 == 0 && heap_chunk_at(h, plain) != LEAKS_NONE)
				     ? plain
				     : next;
		}
	}
}

void heap_mark_free(const struct memory_copy *c, struct leaks_heap *h, const uint64_t *arenas,
		    uint32_t n)
{
	chunk_vec list = { 0 };

	for (uint32_t i = 0; i < h->chunks.n; i++)
		if (!(h->chunks.v[i].bits & (CHUNK_FREE | CHUNK_PLAIN)) &&
		    chunk_usable(&h->chunks.v[i]) == CACHE_USABLE &&
		    take_cache(c, h, h->chunks.v[i].addr + CHUNK_HEADER, false, &list))
			take_cache(c, h, h->chunks.v[i].addr + CHUNK_HEADER, true, &list);
	if (too_many_links(h))
		heap_remark(
			h,
			xstrdup("the lists of free blocks are damaged: blocks that are free may be "
				"shown as leaks"));
	for (uint32_t i = 0; i < n; i++)
		mark_fast(c, h, arenas[i], &list);
	vec_fini(&list);
}
