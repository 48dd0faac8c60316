/* Finds the heap of tcmalloc, as gperftools 2.10 has it (not that of Google's newer tcmalloc).
 *
 *	page map   in the data of the library or program: a table of 2^17 pointers to leaves, one for
 *	           each 2 GB of addresses
 *	leaf       2^18 words, one for each page of 8 KB: the address of a span
 *	span       pages: the number of the first, how many, the list of its free blocks, how many
 *	           blocks are in use, and its size class. Class 0: it is one block
 *	thread cache   a list of free blocks for each class, which count as in use in the spans. Only
 *	           here are the sizes of the classes; a thread-local variable leads to it
 *	central cache  in the data: up to 64 chains of free blocks for each class. What is behind the
 *	           last one is old, and no way to a block */
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum {
	OWN_MAX = 4 << 20,
	LEAF_WORDS = 1 << 18,
	LEAF_SIZE = LEAF_WORDS * 8,
	LEAVES = 1 << 17,
	ROOT_SIZE = LEAVES * 8,
	SPAN_PAGE = 13, /* bits of an address in a page */
	CLASSES_MAX = 128,
	CLASSES_MIN = 32,
	CLASS_SIZE_MAX = 256 << 10,
	TLS_MAX = 64 << 10, /* the variables lie so near to the thread's pointer */
	STEPS_MAX = 1 << 26,
	IN_USE = 0,

	CENTRAL_SIZE = 1216,
	CENTRAL_CLASS = 8,
	CENTRAL_SLOTS = 128,
	CENTRAL_USED = 1152,
	CENTRAL_SLOTS_MAX = 64,
};

struct span {
	uint64_t page, pages, next, prev, objects;
	uint16_t used;
	uint8_t class, state; /* of the state, bits 0-1 are the list that it is in */
	uint32_t pad;
};
_Static_assert(sizeof(struct span) == 48, "a span");

/* A list of a thread's cache. */
struct cache_list {
	uint64_t first;
	uint32_t length, low, most, over;
	int32_t size;
	uint32_t pad;
};
_Static_assert(sizeof(struct cache_list) == 32, "a list");

struct tcmalloc {
	const struct memory_copy *c;
	struct leaks_heap *h;
	memory_word_vec caches;
	uint64_t size[CLASSES_MAX];
	uint32_t classes, first_area, damaged;
	uint64_t damage;
	struct nonzero nonzero;
	uint64_t steps; /* words and lists that may still be looked at for caches of threads */
};

static void tcmalloc_damaged(struct tcmalloc *t, uint64_t at)
{
	t->damage = t->damaged++ ? t->damage : at;
}

/* --- the sizes of the classes --- */

/* Returns the number of classes of a thread's cache, 0 when there is none at this address. */
static uint32_t cache_classes(struct tcmalloc *t, uint64_t at, uint64_t *size)
{
	const uint8_t *p = at % 8 ? NULL
				  : memory_at(t->c, at, sizeof(struct cache_list) * CLASSES_MAX);
	uint32_t n = 0;

	for (; p && n < CLASSES_MAX && t->steps; n++, t->steps--) {
		struct cache_list l;

		memcpy(&l, p + n * sizeof(l), sizeof(l));
		if (!n ? l.size || l.first : l.size <= 0 || (uint64_t)l.size <= size[n - 1])
			break;
		if (l.size > CLASS_SIZE_MAX || l.size % 8 || (n == 1 && l.size != 8) ||
		    (l.first && !l.length))
			return 0;
		size[n] = (uint64_t)l.size;
	}
	return n < CLASSES_MIN || size[n - 1] != CLASS_SIZE_MAX ? 0 : n;
}

static void find_caches(struct tcmalloc *t)
{
	struct hash seen = { 0 };

	for (uint32_t i = 0; i < t->c->threads.n; i++) {
		const uint64_t fs = t->c->threads.v[i].fs;
		const struct memory_region *r = memory_region_at(t->c, fs);
		uint64_t at, last = 0;
		bool is_first;

		hash_put(&seen, &fs, sizeof(fs), &is_first);
		if (!r || !is_first)
			continue;
		at = round_up(fs - r->start > TLS_MAX ? fs - TLS_MAX : r->start, MEMORY_WORD);
		for (; at + MEMORY_WORD <= fs && t->steps; at += MEMORY_WORD) {
			uint64_t size[CLASSES_MAX] = { 0 }, word = memory_word(r, at);
			uint32_t n = word && word != last ? cache_classes(t, word, size) : 0;
			bool is_new = false;

			t->steps -= t->steps > 0;
			if (n && (!t->classes || t->classes == n))
				hash_put(&t->h->seen, &word, sizeof(word), &is_new);
			if (!is_new)
				continue;
			last = word;
			t->classes = n;
			memcpy(t->size, size, sizeof(size));
			vec_push(&t->caches, word);
		}
	}
	hash_fini(&seen);
}

/* --- spans --- */

static bool read_span(const struct tcmalloc *t, uint64_t at, uint64_t page, struct span *ret)
{
	const void *p = at % 8 ? NULL : memory_at(t->c, at, sizeof(*ret));

	if (!p)
		return false;
	memcpy(ret, p, sizeof(*ret));
	return ret->page && ret->page <= page && page - ret->page < ret->pages &&
	       ret->pages < 1ull << 34 && ret->class < t->classes && (ret->state & 3) < 3;
}

/* Returns the number of a leaf, LEAVES when it is none: its first word leads to a span of the page
 * of that word. */
static uint32_t span_leaf(struct tcmalloc *t, uint64_t leaf)
{
	uint64_t at, word = 0, first = 0, page;
	const void *span;
	struct span s;

	if (!nonzero_next(&t->nonzero, leaf, leaf + LEAF_SIZE, &at))
		return LEAVES;
	memcpy(&word, memory_at(t->c, at, sizeof(word)), sizeof(word));
	span = word % 8 ? NULL : memory_at(t->c, word, sizeof(s));
	if (!span)
		return LEAVES;
	memcpy(&first, span, sizeof(first));
	page = first / LEAF_WORDS * LEAF_WORDS + (at - leaf) / MEMORY_WORD;
	return first / LEAF_WORDS < LEAVES && read_span(t, word, page, &s)
		       ? (uint32_t)(first / LEAF_WORDS)
		       : LEAVES;
}

static struct leaks_chunk *object_at(struct tcmalloc *t, uint64_t addr, uint64_t each)
{
	const struct leaks_area *v = t->h->areas.v + t->first_area;
	uint32_t n = t->h->areas.n - t->first_area;
	uint32_t i = partition_point(n, k, v[k].end <= addr);

	if (i == n || v[i].start > addr || v[i].each != each || (addr - v[i].start) % each)
		return NULL;
	return &t->h->chunks.v[v[i].first + (addr - v[i].start) / each];
}

/* Marks the blocks of a list of one size. Returns their number. *ret_whole: it ends as it
 * should. */
static uint32_t mark_objects(struct tcmalloc *t, uint64_t first, uint64_t each, bool *ret_whole)
{
	uint32_t n = 0;

	while (first) {
		struct leaks_chunk *c = object_at(t, first, each);

		if (!c || c->bits & CHUNK_FREE)
			break;
		c->bits |= CHUNK_FREE;
		n++;
		first = memory_word(memory_region_at(t->c, first), first);
	}
	*ret_whole = !first;
	return n;
}

static void add_span(struct tcmalloc *t, const struct span *s)
{
	const uint64_t start = s->page << SPAN_PAGE, all = s->pages << SPAN_PAGE;
	const struct memory_region *r = memory_region_at(t->c, start);
	const uint64_t each = s->class ? t->size[s->class] : all;
	const uint64_t n = all / each;

	if (t->h->own.n < OWN_MAX) /* forged page maps may overlap */
		vec_push(&t->h->own, (struct space_range){ start, start + all });
	else
		tcmalloc_damaged(t, start);
	if ((s->state & 3) != IN_USE)
		return;
	if (!r || (s->class && all > r->end - start) || n > t->h->most - t->h->chunks.n) {
		tcmalloc_damaged(t, start);
		return;
	}
	vec_push(&t->h->areas, (struct leaks_area){ .start = start,
						    .end = start + n * each,
						    .region = r,
						    .first = t->h->chunks.n,
						    .n = (uint32_t)n,
						    .each = each });
	for (uint64_t i = 0; i < n; i++)
		vec_push(&t->h->chunks,
			 (struct leaks_chunk){ start + i * each, each | CHUNK_PLAIN });
}

/* Calls fn for each span of a leaf, at its first page. */
static void each_span(struct tcmalloc *t, uint64_t leaf, uint64_t number,
		      void (*fn)(struct tcmalloc *t, const struct span *s))
{
	const uint64_t end = leaf + LEAF_SIZE;

	for (uint64_t at = leaf; nonzero_next(&t->nonzero, at, end, &at); at += MEMORY_WORD) {
		const uint64_t page = number * LEAF_WORDS + (at - leaf) / MEMORY_WORD;
		uint64_t word = 0;
		struct span s;

		memcpy(&word, memory_at(t->c, at, sizeof(word)), sizeof(word));
		if (read_span(t, word, page, &s) && s.page == page)
			fn(t, &s);
	}
}

static void mark_span(struct tcmalloc *t, const struct span *s)
{
	enum { TORN = 2 };
	const uint64_t each = s->class ? t->size[s->class] : 0;
	uint64_t n;
	bool whole;

	if (!s->class || (s->state & 3) != IN_USE)
		return;
	n = mark_objects(t, s->objects, each, &whole) + (uint64_t)s->used;
	if (!whole || n > (s->pages << SPAN_PAGE) / each + TORN ||
	    n + TORN < (s->pages << SPAN_PAGE) / each)
		tcmalloc_damaged(t, s->page << SPAN_PAGE);
}

static int span_order(const void *a, const void *b)
{
	const struct leaks_area *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Adds the page map that one of whose leaves a word at `at` leads to. Returns where the table ends,
 * 0 when it is no page map. */
static uint64_t add_map(struct tcmalloc *t, const struct memory_region *r, uint64_t at,
			uint64_t leaf)
{
	const uint32_t number = span_leaf(t, leaf), first = t->h->areas.n;
	const uint64_t root = at - 8ull * number;
	memory_word_vec leaves = { 0 };

	if (number == LEAVES || root < r->start || root > at || r->end - root < ROOT_SIZE)
		return 0;
	for (uint32_t i = number; i < LEAVES; i++) {
		uint64_t word = memory_word(r, root + 8ull * i);

		if (!word || !memory_at(t->c, word, LEAF_SIZE) ||
		    (i != number && span_leaf(t, word) != i))
			continue;
		each_span(t, word, i, add_span);
		vec_push(&leaves, word);
		vec_push(&leaves, i);
	}
	if (t->h->areas.n > first)
		qsort(t->h->areas.v + first, t->h->areas.n - first, sizeof(*t->h->areas.v),
		      span_order);
	for (uint32_t i = 0; i < leaves.n; i += 2)
		each_span(t, leaves.v[i], leaves.v[i + 1], mark_span);
	vec_fini(&leaves);
	return root + ROOT_SIZE;
}

/* --- caches --- */

/* Returns true when the central cache's lists of class 1 and those behind it are here. */
static bool is_central(const struct tcmalloc *t, const struct memory_region *r, uint64_t at)
{
	if (r->end - at < (uint64_t)CENTRAL_SIZE * t->classes)
		return false;
	for (uint32_t i = 1; i < t->classes; i++)
		if (memory_word(r, at + (uint64_t)CENTRAL_SIZE * (i - 1) + CENTRAL_CLASS) != i)
			return false;
	return true;
}

static void take_central(struct tcmalloc *t, const struct memory_region *r, uint64_t at)
{
	for (uint32_t i = 1; i < t->classes; i++, at += CENTRAL_SIZE) {
		uint64_t used = memory_word(r, at + CENTRAL_USED) & UINT32_MAX;
		bool whole;

		vec_push(&t->h->own, (struct space_range){ at, at + CENTRAL_SIZE });
		if (used > CENTRAL_SLOTS_MAX) {
			tcmalloc_damaged(t, at);
			continue;
		}
		for (uint64_t k = 0; k < used; k++) {
			mark_objects(t, memory_word(r, at + CENTRAL_SLOTS + 16 * k), t->size[i],
				     &whole);
			if (!whole)
				tcmalloc_damaged(t, at);
		}
	}
}

static void take_lists(struct tcmalloc *t, uint64_t cache)
{
	const uint8_t *p = memory_at(t->c, cache, sizeof(struct cache_list) * CLASSES_MAX);

	for (uint32_t i = 1; p && i < t->classes; i++) {
		struct cache_list l;
		bool whole;

		memcpy(&l, p + i * sizeof(l), sizeof(l));
		mark_objects(t, l.first, t->size[i], &whole);
		if (!whole)
			tcmalloc_damaged(t, cache);
	}
}

/* Calls fn for the words of the data of programs and libraries. It returns where to go on. */
static void each_data_word(struct tcmalloc *t,
			   uint64_t (*fn)(struct tcmalloc *t, const struct memory_region *r,
					  uint64_t at, uint64_t word))
{
	const struct memory_copy *c = t->c;

	for (uint32_t i = 0, k = 0; i < c->runs.n; i++) {
		uint64_t at = round_up(c->runs.v[i].start, MEMORY_WORD);
		const struct memory_region *r;

		while (c->regions.v[k].end <= c->runs.v[i].start)
			k++;
		r = &c->regions.v[k];
		while (r->file && !r->shared && at < c->runs.v[i].end)
			at = fn(t, r, at, memory_word(r, at));
	}
}

static uint64_t try_map(struct tcmalloc *t, const struct memory_region *r, uint64_t at,
			uint64_t word)
{
	uint64_t end = 0;

	if (word && word % 8 == 0 && memory_at(t->c, word, LEAF_SIZE))
		end = add_map(t, r, at, word);
	return end ?: at + MEMORY_WORD;
}

static uint64_t try_central(struct tcmalloc *t, const struct memory_region *r, uint64_t at,
			    uint64_t word)
{
	if (word != 1 || at - r->start < CENTRAL_CLASS || !is_central(t, r, at - CENTRAL_CLASS))
		return at + MEMORY_WORD;
	take_central(t, r, at - CENTRAL_CLASS);
	return at + (uint64_t)CENTRAL_SIZE * (t->classes - 1);
}

bool heap_find_tcmalloc(const struct memory_copy *c, struct leaks_heap *h)
{
	struct tcmalloc t = { .c = c, .h = h, .first_area = h->areas.n, .steps = STEPS_MAX };
	bool any;

	find_caches(&t);
	if (t.classes) {
		nonzero_init(&t.nonzero, c);
		each_data_word(&t, try_map);
		nonzero_fini(&t.nonzero);
	}
	any = h->areas.n > t.first_area;
	if (any) {
		each_data_word(&t, try_central);
		for (uint32_t i = 0; i < t.caches.n; i++)
			take_lists(&t, t.caches.v[i]);
	}
	if (any && !t.steps)
		heap_remark(h, xasprintf("the variables of tcmalloc's threads are too many: their "
					 "free blocks may count as leaks"));
	if (t.damaged)
		heap_remark(h, xasprintf("%u spans or lists of tcmalloc's are damaged, or were "
					 "being changed; the first is at 0x%llx",
					 t.damaged, (unsigned long long)t.damage));
	vec_fini(&t.caches);
	return any;
}
