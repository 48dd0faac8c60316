/* Finds the pages of V8's heap. Each begins at a multiple of V8_PAGE, and its header says where its
 * objects lie. A page is taken when that agrees with its place, and a Map lies at the beginning. */
#include <errno.h>

#include "base/sorted.h"
#include "memory/heaplive/v8_heap.h"

enum {
	HEADER = 88,        /* bytes of a page's header that are read */
	AREA_MAX = 1 << 14, /* from the page on */
	AROUND = 1 << 16,   /* bytes of the Isolate, on each side of its heap */
	OWNER = 1 << 10,    /* bytes of a space */
	LINKS_FROM = 8,     /* words of a header between which the list of pages is */
	LINKS_TO = 64,
	HEAPS_MAX = 1 << 10,
	PAGES_MAX = 1 << 24,
};
#define AREA_LARGEST (1ull << 40)

const uint8_t *v8_memory(struct v8_reader *x, uint64_t addr, uint64_t *ret_n)
{
	const struct memory_region *r = x->last;

	if (!r || addr < r->start || addr >= r->end) {
		r = memory_region_at(x->copy, addr);
		if (!r)
			return NULL;
		x->last = r;
	}
	*ret_n = r->end - addr;
	return r->bytes + (addr - r->start);
}

static const uint8_t *memory_of(struct v8_reader *x, uint64_t addr, uint64_t n)
{
	uint64_t have;
	const uint8_t *p = addr % 8 ? NULL : v8_memory(x, addr, &have);

	return p && have >= n ? p : NULL;
}

static uint32_t page_slot(const struct v8_reader *x, uint64_t base)
{
	return (uint32_t)hash_word(base) & x->page_mask;
}

struct v8_page *v8_page_of(const struct v8_reader *x, uint64_t addr)
{
	const uint64_t base = addr & ~(V8_PAGE - 1ull);

	for (uint32_t i = page_slot(x, base); x->page_slots[i]; i = (i + 1) & x->page_mask)
		if (x->pages.v[x->page_slots[i] - 1].base == base)
			return &x->pages.v[x->page_slots[i] - 1];
	return NULL;
}

const uint8_t *v8_object(const struct v8_reader *x, uint64_t pointer, uint64_t n)
{
	const uint64_t addr = pointer - V8_TAG;
	const struct v8_page *p = (pointer & 7) == V8_TAG ? v8_page_of(x, addr) : NULL;

	return p && addr >= p->start && addr < p->end && n <= p->end - addr
		       ? p->bytes + (addr - p->start)
		       : NULL;
}

/* Adds the page that begins at an address, if there is one. */
static void page_add(struct v8_reader *x, uint64_t base)
{
	const struct v8_heap_version *v = x->version;
	const uint8_t *head = memory_of(x, base, HEADER), *own = head;
	struct v8_page p = { .base = base, .header = base };
	uint64_t size, have;

	if (!head)
		return;
	p.flags = (uint32_t)v8_at(head, v->flags * 8ull);
	if (v->own) {
		p.header = v8_at(head, v->own * 8ull);
		if (!v->apart && p.header != base)
			return;
		own = memory_of(x, p.header, HEADER);
		if (!own)
			return;
	}
	size = v8_at(own, v->size * 8ull);
	p.heap = v8_at(own, v->heap * 8ull);
	p.start = v8_at(own, v->area_start * 8ull);
	p.end = v8_at(own, v->area_end * 8ull);
	p.owner = v->owner ? v8_at(own, v->owner * 8ull) : 0;
	p.large = p.flags & v->large;
	if (p.start <= base || p.start - base > AREA_MAX || p.start % 8 || p.end % 8 ||
	    p.end <= p.start || p.end - p.start > AREA_LARGEST || size % MEMORY_PAGE ||
	    size > AREA_LARGEST || p.end > base + size || p.heap % 8 ||
	    (!p.large && size > V8_PAGE))
		return;
	if (p.heap && !memory_of(x, p.heap, 8))
		return;
	p.bytes = v8_memory(x, p.start, &have);
	if (!p.bytes)
		return;
	if (have < p.end - p.start) {
		x->outside += p.end - p.start - have;
		p.end = p.start + have;
	}
	if (x->pages.n < PAGES_MAX)
		vec_push(&x->pages, p);
}

static void pages_list(struct v8_reader *x, uint64_t start, uint64_t end)
{
	for (uint64_t at = round_up(start, V8_PAGE); at < end && at >= start; at += V8_PAGE)
		page_add(x, at);
}

static int page_order(const void *a, const void *b)
{
	return COMPARE(((const struct v8_page *)a)->base, ((const struct v8_page *)b)->base);
}

static void pages_index(struct v8_reader *x)
{
	uint32_t n = 64, kept = 0;

	if (x->pages.n)
		qsort(x->pages.v, x->pages.n, sizeof(*x->pages.v), page_order);
	/* a forged large page has no others inside */
	for (uint32_t i = 0; i < x->pages.n; i++)
		if (!kept || x->pages.v[i].base >= x->pages.v[kept - 1].end)
			x->pages.v[kept++] = x->pages.v[i];
	x->pages.n = kept;
	while (n < x->pages.n * 2)
		n *= 2;
	free(x->page_slots);
	x->page_slots = xcalloc(n, sizeof(*x->page_slots));
	x->page_mask = n - 1;
	for (uint32_t i = 0; i < x->pages.n; i++) {
		uint32_t at = page_slot(x, x->pages.v[i].base);

		while (x->page_slots[at])
			at = (at + 1) & x->page_mask;
		x->page_slots[at] = i + 1;
	}
}

/* Adds a pair {top, limit} behind `start`, if these lie in one page. */
static bool free_part_add(struct v8_reader *x, const uint8_t *words)
{
	const uint64_t start = v8_at(words, 0), top = v8_at(words, 8), limit = v8_at(words, 16);
	const struct v8_page *p;

	if (!start || start > top || top >= limit || (start | top | limit) % 8)
		return false;
	p = v8_page_of(x, start);
	if (!p || start < p->start || limit > p->end)
		return false;
	vec_push(&x->frees, (struct v8_free_part){ top, limit });
	return true;
}

static void free_parts_find(struct v8_reader *x, uint64_t from, uint64_t to)
{
	uint64_t have;
	const uint8_t *p = v8_memory(x, from, &have);

	if (!p)
		return;
	to = to - from > have ? have : to - from;
	for (uint64_t at = 0; at + 24 <= to;)
		at += free_part_add(x, p + at) ? 24 : 8;
}

static int free_part_order(const void *a, const void *b)
{
	return COMPARE(((const struct v8_free_part *)a)->top,
		       ((const struct v8_free_part *)b)->top);
}

static bool heap_seen(struct v8_reader *x, uint64_t heap)
{
	for (uint32_t i = 0; i < x->heaps.n; i++)
		if (x->heaps.v[i] == heap)
			return true;
	if (x->heaps.n < HEAPS_MAX)
		vec_push(&x->heaps, heap);
	return false;
}

static void free_parts_list(struct v8_reader *x)
{
	struct hash owners = { 0 };
	uint32_t kept = 0;

	for (uint32_t i = 0; i < x->pages.n; i++) {
		const struct v8_page *p = &x->pages.v[i];
		bool fresh = false;

		if (p->heap && !heap_seen(x, p->heap) && x->heaps.n < HEAPS_MAX) {
			const struct memory_region *r = memory_region_at(x->copy, p->heap);
			uint64_t from = p->heap - AROUND;

			if (r && from < r->start)
				from = r->start;
			free_parts_find(x, from, p->heap + AROUND);
		}
		if (p->owner && p->owner % 8 == 0)
			hash_put(&owners, &p->owner, sizeof(p->owner), &fresh);
		if (fresh)
			free_parts_find(x, p->owner, p->owner + OWNER);
	}
	hash_fini(&owners);
	if (x->frees.n)
		qsort(x->frees.v, x->frees.n, sizeof(*x->frees.v), free_part_order);
	for (uint32_t i = 0; i < x->frees.n; i++)
		if (!kept || x->frees.v[i].top >= x->frees.v[kept - 1].limit)
			x->frees.v[kept++] = x->frees.v[i];
	x->frees.n = kept;
}

static bool has_free_part(const struct v8_reader *x, const struct v8_page *p)
{
	uint32_t i = partition_point(x->frees.n, k, x->frees.v[k].top < p->start);

	return i < x->frees.n && x->frees.v[i].limit <= p->end;
}

/* The pages of young objects form a list. Those behind the one that is being filled have none. */
struct young {
	VEC(struct v8_page *) pages; /* by header */
	uint32_t link;               /* word of the header */
};

static int header_order(const void *a, const void *b)
{
	return COMPARE((*(struct v8_page *const *)a)->header,
		       (*(struct v8_page *const *)b)->header);
}

static struct v8_page *young_next(struct v8_reader *x, const struct young *y,
				  const struct v8_page *p, uint32_t link)
{
	const uint8_t *head = memory_of(x, p->header, (link + 2) * 8ull), *other;
	uint64_t next = head ? v8_at(head, link * 8ull) : 0;
	uint32_t i = partition_point(y->pages.n, k, y->pages.v[k]->header < next);

	if (!next || i == y->pages.n || y->pages.v[i]->header != next)
		return NULL;
	other = memory_of(x, next, (link + 2) * 8ull);
	return other && v8_at(other, link * 8ull + 8) == p->header ? y->pages.v[i] : NULL;
}

static void young_mark(struct v8_reader *x)
{
	struct young y = { 0 };
	uint32_t best = 0;

	for (uint32_t i = 0; i < x->pages.n; i++)
		if (x->pages.v[i].flags & V8_TO_PAGE && !x->pages.v[i].large)
			vec_push(&y.pages, &x->pages.v[i]);
	if (y.pages.n)
		qsort(y.pages.v, y.pages.n, sizeof(*y.pages.v), header_order);
	for (uint32_t link = LINKS_FROM; y.pages.n > 1 && link + 2 <= LINKS_TO; link++) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < y.pages.n; i++)
			n += young_next(x, &y, y.pages.v[i], link) != NULL;
		if (n > best) {
			best = n;
			y.link = link;
		}
	}
	for (uint32_t i = 0; best && i < y.pages.n; i++) {
		struct v8_page *p = y.pages.v[i];

		if (!has_free_part(x, p))
			continue;
		for (uint32_t k = 0; k < y.pages.n; k++) {
			p = young_next(x, &y, p, y.link);
			/* the rest of the list is marked already */
			if (!p || p->unused)
				break;
			p->unused = true;
		}
	}
	vec_fini(&y.pages);
}

struct err *v8_pages_find(struct v8_reader *x)
{
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		pages_list(x, x->copy->runs.v[i].start, x->copy->runs.v[i].end);
	pages_index(x);
	if (!x->pages.n)
		return err_new(ENOENT, "the pages of V8's heap cannot be found");
	free_parts_list(x);
	young_mark(x);
	return NULL;
}
