/* Addresses of objects as ranks: a bit for each place where an object may begin, and counts of the
 * bits. Sorted addresses where the objects lie too far apart for that.
 */
#include "base/parallel.h"
#include "graph_private.h"

enum { PAGE_WASTE = 16 }; /* bytes an object that cells may take before addresses are sorted */

static int compare_u64(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static uint32_t page_hash(uint64_t page, uint32_t mask)
{
	return (uint32_t)hash_word(page) & mask;
}

/* Returns the number of the page's cells + 1, or 0. */
static uint32_t page_find(const struct graph_index *x, uint64_t page)
{
	uint32_t i;

	if (x->page)
		return page < x->npages ? x->page[page] : 0;
	for (i = page_hash(page, x->hash_mask); x->hashed[i].number; i = (i + 1) & x->hash_mask)
		if (x->hashed[i].page == page)
			return x->hashed[i].number;
	return 0;
}

static void page_insert(struct graph_index *x, uint64_t page, uint32_t number)
{
	uint32_t i = page_hash(page, x->hash_mask);

	while (x->hashed[i].number)
		i = (i + 1) & x->hash_mask;
	x->hashed[i].page = page;
	x->hashed[i].number = number;
}

/* A list of pages, some of which are there twice. */
struct page_list {
	uint64_t *v;
	size_t n, cap;
	size_t most; /* that the cells may take */
};

static void pages_sort(struct page_list *l)
{
	size_t kept = 0;

	qsort(l->v, l->n, sizeof(*l->v), compare_u64);
	for (size_t k = 0; k < l->n; k++)
		if (!k || l->v[k] != l->v[k - 1])
			l->v[kept++] = l->v[k];
	l->n = kept;
}

/* Returns false when the cells would take too much. */
static bool page_note(struct page_list *l, uint64_t page)
{
	if (l->n == l->cap) {
		/* Repeated pages go, so that objects in no order need no more room. */
		pages_sort(l);
		if (l->n > l->most)
			return false;
		if (l->n > l->cap / 2) {
			l->cap *= 2;
			l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
		}
	}
	l->v[l->n++] = page;
	return true;
}

/* Lists the pages that have objects, in order. Returns false when their cells would take too
 * much. */
static bool pages_list(struct graph_index *x, const struct graph_part *parts, unsigned nparts,
		       size_t n)
{
	struct page_list l = { .cap = 1024 };
	bool ok = true;

	l.most = n * PAGE_WASTE / PAGE_CELLS / sizeof(*x->cells) + 64;
	l.v = xmalloc(l.cap * sizeof(*l.v));
	for (unsigned k = 0; k < nparts; k++) {
		uint64_t last = UINT64_MAX;

		for (uint32_t i = 0; ok && i < parts[k].n; i++) {
			uint64_t page = (parts[k].addresses[i] - x->base) >> x->shift >> PAGE_BITS;

			if (page == last)
				continue;
			last = page;
			ok = page_note(&l, page);
		}
	}
	pages_sort(&l);
	x->page_at = l.v;
	x->nused = (uint32_t)l.n;
	return ok && l.n <= l.most;
}

static void pages_make(struct graph_index *x)
{
	uint64_t span = x->page_at[x->nused - 1] + 1;

	if (span <= 8ull * x->nused + 1024) {
		x->npages = span;
		x->page = xcalloc(span, sizeof(*x->page));
		for (uint32_t k = 0; k < x->nused; k++)
			x->page[x->page_at[k]] = k + 1;
		return;
	}
	for (x->hash_mask = 15; x->hash_mask < 2ull * x->nused;)
		x->hash_mask = x->hash_mask * 2 + 1;
	x->hashed = xcalloc((size_t)x->hash_mask + 1, sizeof(*x->hashed));
	for (uint32_t k = 0; k < x->nused; k++)
		page_insert(x, x->page_at[k], k + 1);
}

struct filling {
	struct graph_index *x;
	const struct graph_part *parts;
};

static void bits_add(struct graph_cell *cell, uint32_t bits)
{
	if (cell)
		__atomic_fetch_or(&cell->bits, bits, __ATOMIC_RELAXED);
}

/* Sets the bits of a part's objects. Those of neighbours are set together. */
static void cells_fill(void *arg, unsigned part)
{
	const struct filling *f = arg;
	const struct graph_index *x = f->x;
	const struct graph_part *p = &f->parts[part];
	struct graph_cell *page_cells = NULL, *cell = NULL;
	uint64_t last = UINT64_MAX;
	uint32_t bits = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		uint64_t slot = (p->addresses[i] - x->base) >> x->shift;
		struct graph_cell *at;

		if (slot >> PAGE_BITS != last) {
			last = slot >> PAGE_BITS;
			page_cells = x->cells + (size_t)(page_find(x, last) - 1) * PAGE_CELLS;
		}
		at = page_cells + slot / CELL_SLOTS % PAGE_CELLS;
		if (at != cell) {
			bits_add(cell, bits);
			cell = at;
			bits = 0;
		}
		bits |= 1u << slot % CELL_SLOTS;
	}
	bits_add(cell, bits);
}

static void cells_make(struct graph_index *x, struct graph_memory *m,
		       const struct graph_part *parts, unsigned n)
{
	struct filling f = { x, parts };
	uint32_t rank = 0;

	x->cells = graph_alloc(m, (size_t)x->nused * PAGE_CELLS * sizeof(*x->cells));
	parallel_run(cells_fill, &f, n);
	for (size_t i = 0; i < (size_t)x->nused * PAGE_CELLS; i++) {
		x->cells[i].rank = rank;
		rank += (uint32_t)__builtin_popcount(x->cells[i].bits);
	}
	x->n = rank;
}

static void sorted_make(struct graph_index *x, struct graph_memory *m,
			const struct graph_part *parts, unsigned nparts, size_t n)
{
	size_t at = 0;

	x->sorted = graph_alloc_unset(m, n * sizeof(*x->sorted));
	for (unsigned k = 0; k < nparts; at += parts[k++].n)
		memcpy(x->sorted + at, parts[k].addresses, parts[k].n * sizeof(*x->sorted));
	qsort(x->sorted, n, sizeof(*x->sorted), compare_u64);
	for (size_t i = 0; i < n; i++)
		if (!i || x->sorted[i] != x->sorted[i - 1])
			x->sorted[x->n++] = x->sorted[i];
}

void graph_index_make(struct graph_index *x, struct graph_memory *m, const struct graph_part *parts,
		      unsigned nparts)
{
	uint64_t differ = 0;
	size_t n = 0;

	memset(x, 0, sizeof(*x));
	x->base = UINT64_MAX;
	for (unsigned k = 0; k < nparts; k++) {
		if (parts[k].low < x->base)
			x->base = parts[k].low;
		differ |= parts[k].differ | (parts[k].first ^ parts[0].first);
		n += parts[k].n;
	}
	if (!n)
		return;
	x->shift = differ ? (unsigned)__builtin_ctzll(differ) : 0;
	if (!pages_list(x, parts, nparts, n)) {
		free(x->page_at);
		x->page_at = NULL;
		x->nused = 0;
		sorted_make(x, m, parts, nparts, n);
		return;
	}
	pages_make(x);
	cells_make(x, m, parts, nparts);
}

void graph_index_fini(struct graph_index *x)
{
	free(x->page);
	free(x->hashed);
	graph_release(x->cells);
	graph_release(x->sorted);
	free(x->page_at);
	memset(x, 0, sizeof(*x));
}

graph_id graph_index_find(const struct graph_index *x, uint64_t address)
{
	uint64_t slot = (address - x->base) >> x->shift;
	const struct graph_cell *cell;
	uint32_t page, bit = 1u << slot % CELL_SLOTS;

	if (x->sorted) {
		uint32_t i = partition_point(x->n, k, x->sorted[k] < address);

		return i < x->n && x->sorted[i] == address ? i : GRAPH_NONE;
	}
	if (!x->nused || address < x->base || (slot << x->shift) + x->base != address)
		return GRAPH_NONE;
	page = page_find(x, slot >> PAGE_BITS);
	if (!page)
		return GRAPH_NONE;
	cell = &x->cells[(size_t)(page - 1) * PAGE_CELLS + slot / CELL_SLOTS % PAGE_CELLS];
	if (!(cell->bits & bit))
		return GRAPH_NONE;
	return cell->rank + (uint32_t)__builtin_popcount(cell->bits & (bit - 1));
}

uint64_t graph_index_address(const struct graph_index *x, graph_id id)
{
	size_t n = (size_t)x->nused * PAGE_CELLS, cell;
	uint32_t bits, bit;
	uint64_t slot;

	if (x->sorted)
		return x->sorted[id];
	cell = partition_point(n, k, x->cells[k].rank <= id) - 1;
	bits = x->cells[cell].bits;
	for (uint32_t skip = id - x->cells[cell].rank; skip; skip--)
		bits &= bits - 1;
	bit = (uint32_t)__builtin_ctz(bits);
	slot = (x->page_at[cell / PAGE_CELLS] * PAGE_CELLS + cell % PAGE_CELLS) * CELL_SLOTS + bit;
	return x->base + (slot << x->shift);
}
