/* Finds the heap of jemalloc 5.3, as it is built for pages of 4 KB and addresses of 48 bits.
 *
 *	rtree     in the data of the library or program: a table of 2^18 pointers to leaves, one for
 *	          each GB of addresses
 *	leaf      2^18 words, one for each page: the address of an extent, and a copy of its properties.
 *	          By these copies the tree is recognised.
 *	extent    pages. A slab has blocks of one size and a bit for each of them, set where it is free;
 *	          any other extent in use has one block.
 *	tcache    of a thread, in its thread-local variables: for each size a stack of free blocks,
 *	          which count as in use in the slabs. It is recognised by what these stacks hold.
 *
 * Extents' own structures, and those that were of an extent before, hold the addresses of first
 * blocks, and stacks those of blocks that they have given out. Neither counts as a way to a block.
 * The structures lie in memory that jemalloc takes for itself in pieces of 2 MB. */
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum {
	LEAF_WORDS = 1 << 18,
	LEAF_SIZE = LEAF_WORDS * 8,
	PAGE_BITS = 12,
	LEAF_SHIFT = 30, /* addresses of a leaf */
	ADDRESS_BITS = 48,
	EXTENT_SIZE = 128,
	SLAB_BITS_MAX = 512,
	SMALL_CLASSES = 36,
	CLASSES = 232,
	BIN_SIZE = 24,
	OWN_SIZE = 2 << 20,
	STEPS_MAX = 1 << 26,
	TLS_MAX = 64 << 10, /* the variables lie so near to the thread's pointer */
	ACTIVE = 0,
};

/* edata_t. Of bits: 0-11 arena, 12 slab, 17-19 state, 20-27 size class, 28-37 free blocks. */
struct extent {
	uint64_t bits, addr, size, hpa, serial, link[3];
	uint64_t unused[SLAB_BITS_MAX / 64]; /* of a slab */
};
_Static_assert(sizeof(struct extent) == EXTENT_SIZE, "an extent");

struct jemalloc {
	const struct memory_copy *c;
	struct leaks_heap *h;
	uint32_t first_area; /* of h->areas */
	uint64_t last_own;   /* the piece of memory that was met last */
	struct hash leaves;  /* those that were added: several trees may lead to one */
	uint64_t steps;      /* blocks that may still be looked at in caches of threads */
	struct nonzero nonzero;
	uint32_t damaged;
	uint64_t damage;
};

static uint32_t extent_class(const struct extent *e)
{
	return e->bits >> 20 & 255;
}

static uint32_t extent_state(const struct extent *e)
{
	return e->bits >> 17 & 7;
}

static bool extent_is_slab(const struct extent *e)
{
	return e->bits >> 12 & 1;
}

/* Returns the size of a class: 8, then four for each doubling. */
static uint64_t class_size(uint32_t i)
{
	uint32_t group, k;

	if (i < 5)
		return i ? 16ull * i : 8;
	group = (i - 5) / 4;
	k = (i - 5) % 4;
	return (64ull << group) + (16ull << group) * (k + 1);
}

/* Returns the address of the extent in a word of a leaf. */
static uint64_t extent_address(uint64_t word)
{
	return word & ((1ull << ADDRESS_BITS) - 1) & ~(EXTENT_SIZE - 1ull);
}

/* Reads the extent of a word of a leaf, of a page `in` the leaf. Returns false when it is none.
 * *ret_first: it is the word of its first page. Only there its size class is sure to be set. */
static bool read_extent(const struct jemalloc *j, uint64_t word, uint64_t in, struct extent *ret,
			bool *ret_first)
{
	const void *p = memory_at(j->c, extent_address(word), EXTENT_SIZE);
	uint64_t first;

	if (!p)
		return false;
	memcpy(ret, p, sizeof(*ret));
	ret->size &= ~(MEMORY_PAGE - 1ull);
	first = (ret->addr >> PAGE_BITS) % LEAF_WORDS;
	*ret_first = in == first;
	if (!ret->addr || !ret->size || ret->addr >> ADDRESS_BITS || ret->size >> ADDRESS_BITS)
		return false;
	if (!*ret_first) /* it may have begun in the leaf before */
		return (in - first) % LEAF_WORDS < ret->size >> PAGE_BITS;
	return word >> ADDRESS_BITS == extent_class(ret) && (word >> 2 & 7) == extent_state(ret) &&
	       (word & 1) == extent_is_slab(ret);
}

/* Returns the GB that a leaf is of, LEAF_WORDS when it is no leaf. */
static uint32_t leaf_number(struct jemalloc *j, uint64_t leaf)
{
	const uint64_t end = leaf + LEAF_SIZE;

	for (uint64_t at = leaf; nonzero_next(&j->nonzero, at, end, &at); at += MEMORY_WORD) {
		uint64_t word = 0;
		struct extent e;
		bool first;

		memcpy(&word, memory_at(j->c, at, sizeof(word)), sizeof(word));
		if (word == (uint64_t)CLASSES << ADDRESS_BITS) /* an extent was there */
			continue;
		if (!read_extent(j, word, (at - leaf) / MEMORY_WORD, &e, &first))
			return LEAF_WORDS;
		if (first)
			return (uint32_t)(e.addr >> LEAF_SHIFT);
	}
	return LEAF_WORDS;
}

/* --- extents --- */

static void jemalloc_damaged(struct jemalloc *j, uint64_t at)
{
	j->damage = j->damaged++ ? j->damage : at;
}

static void add_blocks(struct jemalloc *j, const struct extent *e, uint64_t each, uint32_t n)
{
	const struct memory_region *r = memory_region_at(j->c, e->addr);
	struct leaks_area a = { .start = e->addr,
				.end = e->addr + each * n,
				.region = r,
				.first = j->h->chunks.n,
				.n = n,
				.each = each };
	uint32_t unused = 0;

	if (!r || a.end > r->end || e->addr % MEMORY_WORD || n > j->h->most - j->h->chunks.n) {
		jemalloc_damaged(j, e->addr);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool is_free = extent_is_slab(e) && (e->unused[i / 64] >> i % 64 & 1);

		vec_push(&j->h->chunks,
			 (struct leaks_chunk){ e->addr + i * each,
					       each | CHUNK_PLAIN | (is_free ? CHUNK_FREE : 0) });
		unused += is_free;
	}
	vec_push(&j->h->areas, a);
	if (extent_is_slab(e) && unused != (e->bits >> 28 & 1023))
		jemalloc_damaged(j, e->addr);
}

static void add_extent(struct jemalloc *j, const struct extent *e, uint64_t own)
{
	const uint64_t page = e->addr & ~(MEMORY_PAGE - 1ull), each = class_size(extent_class(e));
	const bool slab = extent_is_slab(e);

	own &= ~(OWN_SIZE - 1ull);
	if (own != j->last_own)
		vec_push(&j->h->own, (struct space_range){ own, own + OWN_SIZE });
	j->last_own = own;
	if (e->size > 1ull << ADDRESS_BITS)
		return;
	vec_push(&j->h->own, (struct space_range){ page, page + e->size });
	if (extent_state(e) != ACTIVE || extent_class(e) >= CLASSES)
		return;
	if (slab ? extent_class(e) >= SMALL_CLASSES || e->size / each > SLAB_BITS_MAX
		 : each > page + e->size - e->addr)
		jemalloc_damaged(j, e->addr);
	else
		add_blocks(j, e, each, slab ? (uint32_t)(e->size / each) : 1);
}

static void add_leaf(struct jemalloc *j, uint64_t leaf, uint64_t number)
{
	const uint64_t end = leaf + LEAF_SIZE;
	bool is_new;

	(void)hash_put(&j->leaves, &leaf, sizeof(leaf), &is_new);
	if (!is_new)
		return;
	vec_push(&j->h->own, (struct space_range){ leaf, end });
	for (uint64_t at = leaf; nonzero_next(&j->nonzero, at, end, &at); at += MEMORY_WORD) {
		uint64_t word = 0;
		struct extent e;
		bool first;

		memcpy(&word, memory_at(j->c, at, sizeof(word)), sizeof(word));
		if (extent_address(word) &&
		    read_extent(j, word, (at - leaf) / MEMORY_WORD, &e, &first) && first &&
		    e.addr >> LEAF_SHIFT == number)
			add_extent(j, &e, extent_address(word));
	}
}

/* Adds the tree that one of whose leaves a word at `at` leads to. Returns where the tree ends, 0
 * when it is no tree. */
static uint64_t add_tree(struct jemalloc *j, const struct memory_region *r, uint64_t at,
			 uint64_t leaf)
{
	uint32_t number = leaf_number(j, leaf);
	const uint64_t root = at - 8ull * number;

	if (number == LEAF_WORDS || root < r->start || root > at || r->end - root < LEAF_SIZE)
		return 0;
	for (uint32_t i = number; i < LEAF_WORDS; i++) {
		uint64_t word = memory_word(r, root + 8ull * i);

		if (word && memory_at(j->c, word, LEAF_SIZE) &&
		    (i == number || leaf_number(j, word) == i))
			add_leaf(j, word, i);
	}
	return root + LEAF_SIZE;
}

/* --- thread caches --- */

static struct leaks_chunk *block_at(struct jemalloc *j, uint64_t addr, uint64_t each)
{
	const struct leaks_area *v = j->h->areas.v + j->first_area;
	uint32_t n = j->h->areas.n - j->first_area;
	uint32_t i = partition_point(n, k, v[k].end <= addr);

	if (i == n || v[i].start > addr ||
	    (each && (v[i].each != each || (addr - v[i].start) % each)))
		return NULL;
	return &j->h->chunks.v[v[i].first + (addr - v[i].start) / v[i].each];
}

/* Looks at a stack of free blocks of one size. Marks them, and the block that the stack lies in, so
 * that it is not searched. Returns false when it is no such stack. */
static bool take_bin(struct jemalloc *j, const struct memory_region *r, uint64_t bin, uint32_t i,
		     bool mark)
{
	const uint64_t head = memory_word(r, bin), bounds = memory_word(r, bin + 16);
	const uint16_t full = (uint16_t)(bounds >> 16), empty = (uint16_t)(bounds >> 32);
	const uint32_t room = (uint16_t)(empty - full), used = (uint16_t)(empty - (uint16_t)head);
	struct leaks_chunk *c;

	if (head % MEMORY_WORD || full % MEMORY_WORD || empty % MEMORY_WORD || used > room ||
	    !room || bounds >> 48 || !memory_at(j->c, head - (room - used), room) || !j->steps)
		return false;
	/* an empty one is a step, too */
	j->steps -= j->steps < used + 1 ? j->steps : used + 1;
	if (mark && (c = block_at(j, head - (room - used), 0)))
		c->bits |= CHUNK_REACHED;
	for (uint32_t k = 0; k < used; k += MEMORY_WORD) {
		const void *p = memory_at(j->c, head + k, MEMORY_WORD);
		uint64_t block = 0;

		if (p)
			memcpy(&block, p, sizeof(block));
		c = p ? block_at(j, block, class_size(i)) : NULL;
		if (!c)
			return false;
		if (mark)
			c->bits |= CHUNK_FREE;
	}
	return true;
}

/* Searches the cache of a thread before its thread pointer. A thread has one. */
static void take_cache(struct jemalloc *j, uint64_t fs)
{
	const struct memory_region *r = memory_region_at(j->c, fs);
	uint64_t at;

	if (!r || fs % MEMORY_WORD)
		return;
	at = fs - r->start > TLS_MAX ? fs - TLS_MAX : r->start;
	for (at = round_up(at, MEMORY_WORD); at + SMALL_CLASSES * BIN_SIZE <= fs;
	     at += MEMORY_WORD) {
		uint32_t n = 0;

		j->steps -= j->steps > 0;
		while (n < CLASSES && at + (n + 1) * BIN_SIZE <= r->end &&
		       take_bin(j, r, at + n * BIN_SIZE, n, false))
			n++;
		if (n < SMALL_CLASSES)
			continue;
		for (uint32_t i = 0; i < n; i++)
			take_bin(j, r, at + i * BIN_SIZE, i, true);
		return;
	}
}

static int jemalloc_area_order(const void *a, const void *b)
{
	const struct leaks_area *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

bool heap_find_jemalloc(const struct memory_copy *c, struct leaks_heap *h)
{
	struct jemalloc j = { .c = c, .h = h, .first_area = h->areas.n, .steps = STEPS_MAX };
	struct hash seen = { 0 };
	bool any = false;

	nonzero_init(&j.nonzero, c);
	for (uint32_t i = 0, k = 0; i < c->runs.n; i++) {
		const struct space_range *run = &c->runs.v[i];
		const struct memory_region *r;
		uint64_t at = round_up(run->start, MEMORY_WORD), end;

		while (c->regions.v[k].end <= run->start)
			k++;
		r = &c->regions.v[k];
		if (!r->file || r->shared || r->end - r->start < LEAF_SIZE)
			continue;
		for (; at < run->end; at += MEMORY_WORD) {
			uint64_t word = memory_word(r, at);

			if (!word || word % 64 || !memory_at(c, word, LEAF_SIZE))
				continue;
			end = add_tree(&j, r, at, word);
			if (end) {
				any = true;
				at = end - MEMORY_WORD;
			}
		}
	}
	if (h->areas.n > j.first_area)
		qsort(h->areas.v + j.first_area, h->areas.n - j.first_area, sizeof(*h->areas.v),
		      jemalloc_area_order);
	for (uint32_t i = 0; any && i < c->threads.n; i++) {
		const uint64_t fs = c->threads.v[i].fs;
		bool is_new; /* threads may share one, if they are hostile */

		(void)hash_put(&seen, &fs, sizeof(fs), &is_new);
		if (is_new && j.steps)
			take_cache(&j, fs);
	}
	hash_fini(&seen);
	if (!j.steps)
		heap_remark(h, xasprintf("the caches of jemalloc's threads are too large: their "
					 "free blocks may count as leaks"));
	if (j.damaged)
		heap_remark(h, xasprintf("%u extents of jemalloc's are damaged, or were being "
					 "changed; the first is at 0x%llx",
					 j.damaged, (unsigned long long)j.damage));
	nonzero_fini(&j.nonzero);
	hash_fini(&j.leaves);
	return any;
}
