/* Finds the pages of slots of Ruby's collector. Nothing exports the collector's variables, and
 * their offsets differ between builds. So every word of the VM and of what it points to is tried:
 * the list of pages is where each item is a page whose block leads back to it. */
#include <errno.h>

#include "base/sorted.h"
#include "memory/heaplive/ruby_heap.h"

enum {
	SEARCHED = 8192, /* bytes of the VM, and of the collector's variables */
	PIECE_SHIFT = 14,
	BLOCK_MIN = 1 << PIECE_SHIFT, /* of a page up to 3.0 */
	BLOCK_MAX = 1 << 16,
	SLOT_MIN = 40,
	SLOT_MAX = 1024,
	CELLS_MAX = 1 << 24,
	LOOKS_MAX = 1 << 23, /* at items of all lists; forged ones can be millions of long lists */
	SURE = 8,            /* a list of so many pages, all of them valid, is the collector's */
};

/* Returns how many bytes from addr on the copy has, at most SEARCHED. */
static const uint8_t *searched(const struct memory_copy *c, uint64_t addr, uint32_t *ret_n)
{
	const struct memory_region *r = addr & 7 ? NULL : memory_region_at(c, addr);

	if (!r)
		return NULL;
	*ret_n = r->end - addr < SEARCHED ? (uint32_t)(r->end - addr) : SEARCHED;
	return r->bytes + (addr - r->start);
}

/* The structure of a page: five numbers of 16 bits, of which the first is the size of a slot since
 * 3.1, flags, pointers. */
static bool page_at(const struct ruby_heap *h, uint64_t addr, struct ruby_page *ret)
{
	const bool sized = h->layout->version >= RUBY_3_1;
	const uint8_t *p = addr & 7 ? NULL : memory_at(h->copy, addr, 48), *block;
	uint16_t size = SLOT_MIN, total;

	if (!p)
		return false;
	if (sized)
		memcpy(&size, p, sizeof(size));
	memcpy(&total, p + (sized ? 2 : 0), sizeof(total));
	memcpy(&ret->start, p + (sized ? 32 : 24), sizeof(ret->start));
	if (size < SLOT_MIN || size > SLOT_MAX || size & 7 || !total || ret->start & 7)
		return false;
	ret->slot_size = size;
	ret->end = ret->start + (uint64_t)total * size;
	for (uint64_t unit = BLOCK_MAX; unit >= BLOCK_MIN; unit /= 4) {
		uint64_t at = ret->start & ~(unit - 1);

		block = memory_at(h->copy, at, 8);
		if (block && ruby_slot_word(block, 0) == addr && ret->end - at <= unit) {
			ret->bytes = memory_at(h->copy, ret->start, ret->end - ret->start);
			return ret->bytes;
		}
	}
	return false;
}

static int pages_by_start(const void *a, const void *b)
{
	const struct ruby_page *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Counts the pages of a list, 0: it is none, as more than half of its items are no pages. */
static uint64_t count_pages(struct ruby_heap *h, uint64_t list, uint64_t n)
{
	const uint8_t *items = list & 7 || n > UINT32_MAX ? NULL : memory_at(h->copy, list, n * 8);
	struct ruby_page page;
	uint64_t valid = 0;

	for (uint64_t i = 0; items && i < n; i++) {
		if (h->looked++ >= LOOKS_MAX)
			return 0;
		valid += page_at(h, ruby_slot_word(items + i * 8, 0), &page);
		if (valid * 2 + 1 < i) /* of the first ones, too */
			return 0;
	}
	return valid * 2 > n ? valid : 0;
}

/* Takes the list with the most pages. Returns true when it is the collector's for sure. */
static bool take_pages(struct ruby_heap *h, uint64_t list, uint64_t n, uint64_t collector)
{
	uint64_t valid = count_pages(h, list, n);

	if (valid > h->valid) {
		h->valid = valid;
		h->list = list;
		h->listed = n;
		h->collector = collector;
	}
	return valid == n && n >= SURE;
}

static void read_pages(struct ruby_heap *h)
{
	const uint8_t *items = h->valid ? memory_at(h->copy, h->list, h->listed * 8) : NULL;
	struct ruby_page page;

	for (uint64_t i = 0; items && i < h->listed; i++)
		if (page_at(h, ruby_slot_word(items + i * 8, 0), &page))
			vec_push(&h->pages, page);
}

/* Tries a word of the collector's variables. Up to 3.3 it points to the items, and the next word is
 * their number; later it points to their number and to the room for them, and the items follow. */
static bool take_list(struct ruby_heap *h, uint64_t list, uint64_t n, uint64_t collector)
{
	const uint8_t *items = list & 7 || list < 4096 ? NULL : memory_at(h->copy, list, 24);
	struct ruby_page page;

	if (!items)
		return false;
	if (page_at(h, ruby_slot_word(items, 0), &page))
		return take_pages(h, list, n, collector);
	n = ruby_slot_word(items, 0);
	return n && n <= ruby_slot_word(items, 8) && take_pages(h, list + 16, n, collector);
}

static bool is_collector(struct ruby_heap *h, uint64_t addr)
{
	uint32_t n;
	const uint8_t *p = searched(h->copy, addr, &n);

	for (uint32_t i = 0; p && i + 16 <= n; i += 8)
		if (take_list(h, ruby_slot_word(p, i), ruby_slot_word(p, i + 8), addr))
			return true;
	return false;
}

/* Sorts the pages, and drops those that overlap another. */
static void tidy(struct ruby_heap *h)
{
	uint32_t n = 0;

	if (h->pages.n)
		qsort(h->pages.v, h->pages.n, sizeof(*h->pages.v), pages_by_start);
	for (uint32_t i = 0; i < h->pages.n; i++) {
		const struct ruby_page *p = &h->pages.v[i];

		/* no two in the same piece, as blocks are aligned */
		if (n && (h->pages.v[n - 1].end > p->start ||
			  (h->pages.v[n - 1].end - 1) >> PIECE_SHIFT == p->start >> PIECE_SHIFT))
			continue;
		h->slots += (p->end - p->start) / p->slot_size;
		h->pages.v[n++] = *p;
	}
	h->pages.n = n;
}

static void make_cells(struct ruby_heap *h)
{
	uint64_t n;

	h->lo = h->pages.v[0].start >> PIECE_SHIFT << PIECE_SHIFT;
	h->hi = vec_last(&h->pages)->end;
	n = ((h->hi - h->lo) >> PIECE_SHIFT) + 1;
	if (n > CELLS_MAX)
		return;
	h->cells = xcalloc(n, sizeof(*h->cells));
	for (uint32_t i = 0; i < h->pages.n; i++) {
		const struct ruby_page *p = &h->pages.v[i];

		for (uint64_t k = (p->start - h->lo) >> PIECE_SHIFT;
		     k <= (p->end - 1 - h->lo) >> PIECE_SHIFT; k++)
			h->cells[k] = i + 1;
	}
}

struct err *ruby_heap_find(const struct memory_copy *c, const struct ruby *r, struct ruby_heap *ret)
{
	struct ruby_heap h = { .copy = c, .layout = &r->layout };
	const uint8_t *words = NULL;
	uint32_t n = 0;
	uint64_t vm;

	if (ruby_word(r, r->vm, &vm))
		words = searched(c, vm, &n);
	for (uint32_t i = 0; words && i + 8 <= n; i += 8)
		if (is_collector(&h, ruby_slot_word(words, i)))
			break;
	read_pages(&h);
	tidy(&h);
	if (!h.pages.n) {
		ruby_heap_fini(&h);
		return err_new(ENOENT,
			       "the heap of Ruby %s is not as it should be: the pages of its "
			       "collector are not found",
			       r->runtime.version);
	}
	make_cells(&h);
	*ret = h;
	return NULL;
}

void ruby_heap_fini(struct ruby_heap *h)
{
	vec_fini(&h->pages);
	free(h->cells);
	h->cells = NULL;
}

const uint8_t *ruby_slot(const struct ruby_heap *h, uint64_t addr, uint32_t *ret_size)
{
	const struct ruby_page *p;
	uint32_t i;

	if (addr & 7 || addr < h->lo || addr >= h->hi)
		return NULL;
	i = h->cells ? h->cells[(addr - h->lo) >> PIECE_SHIFT]
		     : partition_point(h->pages.n, k, h->pages.v[k].start <= addr);
	if (!i)
		return NULL;
	p = &h->pages.v[i - 1];
	if (addr < p->start || addr >= p->end || (addr - p->start) % p->slot_size)
		return NULL;
	if (ret_size)
		*ret_size = p->slot_size;
	return p->bytes + (addr - p->start);
}
