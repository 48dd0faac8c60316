/* Addresses of objects as ranks: a bit for each place where an object may begin, and counts of the
 * bits. Sorted addresses where the objects lie too far apart for that.
 */
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

/* Lists the pages that have objects, in order. Returns false when their cells would take too
 * much. */
static bool pages_list(struct graph_index *x, const uint64_t *addresses, uint32_t n)
{
	size_t cap = 1024, used = 0, most = (size_t)n * PAGE_WASTE / PAGE_CELLS / sizeof(*x->cells);
	uint64_t *v = xmalloc(cap * sizeof(*v)), last = UINT64_MAX;
	size_t kept = 0;

	most += 64;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t page = (addresses[i] - x->base) >> x->shift >> PAGE_BITS;

		if (page == last)
			continue;
		last = page;
		if (used == cap) {
			/* Repeated pages go, so that objects in no order need no more room. */
			qsort(v, used, sizeof(*v), compare_u64);
			kept = 0;
			for (size_t k = 0; k < used; k++)
				if (!k || v[k] != v[k - 1])
					v[kept++] = v[k];
			used = kept;
			if (kept > most) {
				free(v);
				return false;
			}
			if (kept > cap / 2) {
				cap *= 2;
				v = xrealloc(v, cap * sizeof(*v));
			}
		}
		v[used++] = page;
	}
	qsort(v, used, sizeof(*v), compare_u64);
	kept = 0;
	for (size_t k = 0; k < used; k++)
		if (!k || v[k] != v[k - 1])
			v[kept++] = v[k];
	x->page_at = v;
	x->nused = (uint32_t)kept;
	return kept <= most;
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

static void cells_fill(struct graph_index *x, struct graph_memory *m, const uint64_t *addresses,
		       uint32_t n)
{
	uint32_t rank = 0;
	uint64_t last = UINT64_MAX;
	struct graph_cell *page_cells = NULL;

	x->cells = graph_alloc(m, (size_t)x->nused * PAGE_CELLS * sizeof(*x->cells));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t slot = (addresses[i] - x->base) >> x->shift;

		if (slot >> PAGE_BITS != last) {
			last = slot >> PAGE_BITS;
			page_cells = x->cells + (size_t)(page_find(x, last) - 1) * PAGE_CELLS;
		}
		page_cells[slot / CELL_SLOTS % PAGE_CELLS].bits |= 1u << slot % CELL_SLOTS;
	}
	for (size_t i = 0; i < (size_t)x->nused * PAGE_CELLS; i++) {
		x->cells[i].rank = rank;
		rank += (uint32_t)__builtin_popcount(x->cells[i].bits);
	}
	x->n = rank;
}

static void sorted_make(struct graph_index *x, struct graph_memory *m, const uint64_t *addresses,
			uint32_t n)
{
	x->sorted = graph_alloc(m, (size_t)n * sizeof(*addresses));
	memcpy(x->sorted, addresses, (size_t)n * sizeof(*addresses));
	qsort(x->sorted, n, sizeof(*x->sorted), compare_u64);
	for (uint32_t i = 0; i < n; i++)
		if (!i || x->sorted[i] != x->sorted[i - 1])
			x->sorted[x->n++] = x->sorted[i];
}

void graph_index_make(struct graph_index *x, struct graph_memory *m, const uint64_t *addresses,
		      uint32_t n)
{
	uint64_t low = UINT64_MAX, differ = 0;

	memset(x, 0, sizeof(*x));
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (addresses[i] < low)
			low = addresses[i];
	for (uint32_t i = 0; i < n; i++)
		differ |= addresses[i] - low;
	x->base = low;
	x->shift = differ ? (unsigned)__builtin_ctzll(differ) : 0;
	if (!pages_list(x, addresses, n)) {
		free(x->page_at);
		x->page_at = NULL;
		x->nused = 0;
		sorted_make(x, m, addresses, n);
		return;
	}
	pages_make(x);
	cells_fill(x, m, addresses, n);
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
