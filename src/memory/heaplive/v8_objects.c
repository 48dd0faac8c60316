/* Walks over the pages of V8's heap, from object to object. */
#include "base/sorted.h"
#include "memory/heaplive/v8_heap.h"

enum { STARTS = V8_PAGE / 8 / 64, CONTENT_MAX = 1 << 20 /* bytes */ };
#define BUFFER_MAX (1ull << 46) /* bytes */

/* A walk over a page. */
struct walk {
	struct v8_page *page;
	uint64_t at;
	uint32_t free; /* the first free part that ends behind `at` */
	uint32_t map;  /* index of the last one */
};

static const uint8_t *bytes_at(const struct walk *w)
{
	return w->page->bytes + (w->at - w->page->start);
}

/* Returns the index + 1 of the Map of the object at `at`, 0: there is none. */
static uint32_t map_of(struct v8_reader *x, struct walk *w)
{
	const uint64_t word = v8_at(bytes_at(w), 0);
	const struct v8_map *m;

	if (w->map && x->maps.v[w->map - 1].address == word)
		return w->map;
	m = v8_map_at(x, word);
	w->map = m ? (uint32_t)(m - x->maps.v) + 1 : 0;
	return w->map;
}

static void page_start(struct v8_page *p, uint64_t addr)
{
	const uint64_t i = (addr - p->base) / 8;

	if (i / 64 < STARTS)
		p->starts[i / 64] |= 1ull << i % 64;
}

bool v8_is_object(const struct v8_reader *x, uint64_t pointer)
{
	const uint64_t addr = pointer - V8_TAG;
	const struct v8_page *p;
	uint64_t i;

	if ((pointer & 7) != V8_TAG)
		return false;
	p = v8_page_of(x, addr);
	i = addr % V8_PAGE / 8;
	return p && p->starts && p->starts[i / 64] >> i % 64 & 1;
}

uint64_t v8_buffer_note(struct v8_reader *x, const uint8_t *p, uint64_t size)
{
	const uint32_t at = (uint32_t)x->v8->n.buffer_store, n = (uint32_t)x->v8->n.buffer_bytes;
	struct v8_store s;

	if (!at || !n || at + 8ull > size || n + 8ull > size)
		return 0;
	s = (struct v8_store){ v8_at(p, at), v8_at(p, n) };
	if (!s.addr || !s.bytes || s.bytes > BUFFER_MAX || v8_page_of(x, s.addr))
		return 0;
	vec_push(&x->stores, s);
	return s.addr;
}

/* The characters of a string, to find equal ones. */
static void content_add(struct v8_reader *x, const struct v8_map *m, const uint8_t *p,
			uint64_t size)
{
	const bool pairs = m->sizing == V8_STRING_PAIRS;
	uint64_t n;

	if (!graph_wanted(x->graph)->contents || (!pairs && m->sizing != V8_STRING_BYTES))
		return;
	n = v8_at4(p, (uint32_t)x->v8->n.string_length) * (pairs ? 2ull : 1);
	if (n && n <= CONTENT_MAX && m->size + n <= size)
		graph_content(x->graph, p + m->size, n);
}

static void object_add(struct v8_reader *x, struct walk *w, uint32_t map, uint64_t size)
{
	struct v8_map *m = &x->maps.v[map];
	const uint8_t *p = bytes_at(w);

	if (m->holds == V8_IS_FILLER)
		return;
	x->objects++;
	if (!w->page->starts) {
		if (m->closure) {
			graph_count(x->graph, v8_class(x, map, w->at, p, size), 1, size);
			return;
		}
		if (!m->class) {
			v8_class(x, map, w->at, p, size);
			m = &x->maps.v[map];
		}
		m->n++;
		m->bytes += size;
		if (m->type == x->v8->n.type_buffer)
			v8_buffer_note(x, p, size);
		return;
	}
	page_start(w->page, w->at);
	graph_object(x->graph, w->at, v8_class(x, map, w->at, p, size), size);
	content_add(x, &x->maps.v[map], p, size);
	v8_edges(x, p, size, map);
	v8_values(x, &x->maps.v[map], w->at, p, size);
	if (!w->page->heap)
		graph_root(x->graph, w->at, "read-only");
}

/* Goes over a free part. Returns false when there is none here. */
static bool free_skip(struct v8_reader *x, struct walk *w, uint64_t *ret_limit)
{
	const struct v8_free_part *f;

	while (w->free < x->frees.n && x->frees.v[w->free].limit <= w->at)
		w->free++;
	f = w->free < x->frees.n ? &x->frees.v[w->free] : NULL;
	*ret_limit = w->page->end;
	if (!f || f->top >= w->page->end)
		return false;
	if (w->at < f->top) {
		*ret_limit = f->top;
		return false;
	}
	/* nothing lies behind the free part of young objects */
	w->at = w->page->flags & V8_TO_PAGE ? w->page->end : f->limit;
	return true;
}

/* Goes to the next place, up to the limit, where an object begins. Zeros are memory that V8 has not
 * used yet. */
static void walk_resync(struct v8_reader *x, struct walk *w, uint64_t limit)
{
	do {
		uint32_t map;

		x->skipped += v8_at(bytes_at(w), 0) ? 8 : 0;
		w->at += 8;
		if (w->at + 8 > limit) {
			w->at = limit;
			return;
		}
		map = map_of(x, w);
		if (map && v8_size(x, &x->maps.v[map - 1], bytes_at(w), limit - w->at))
			return;
	} while (true);
}

static void page_walk(struct v8_reader *x, struct v8_page *p)
{
	struct walk w = { .page = p, .at = p->start };

	w.free = partition_point(x->frees.n, k, x->frees.v[k].limit <= p->start);
	while (w.at + 8 <= p->end) {
		uint64_t limit, size = 0;
		uint32_t map;

		if (free_skip(x, &w, &limit))
			continue;
		map = map_of(x, &w);
		if (map)
			size = v8_size(x, &x->maps.v[map - 1], bytes_at(&w), limit - w.at);
		if (!size) {
			walk_resync(x, &w, limit);
			continue;
		}
		object_add(x, &w, map - 1, size);
		if (p->large)
			return;
		w.at += size;
	}
}

/* Adds the memory of array buffers, which is not in the heap. Several of them may share it. */
static void stores_add(struct v8_reader *x)
{
	const bool counts = graph_wanted(x->graph)->counts;
	const uint32_t class = x->stores.n ? v8_class_named(x, "system / JSArrayBufferData") : 0;
	struct hash seen = { 0 };

	for (uint32_t i = 0; i < x->stores.n; i++) {
		const struct v8_store *s = &x->stores.v[i];
		bool fresh;

		hash_put(&seen, &s->addr, sizeof(s->addr), &fresh);
		if (fresh && counts)
			graph_count(x->graph, class, 1, s->bytes);
		else if (fresh)
			graph_object(x->graph, s->addr, class, s->bytes);
	}
	hash_fini(&seen);
}

void v8_objects_add(struct v8_reader *x)
{
	const bool counts = graph_wanted(x->graph)->counts;

	for (uint32_t i = 0; i < x->pages.n; i++) {
		struct v8_page *p = &x->pages.v[i];

		if (p->unused || p->flags & V8_FROM_PAGE)
			continue;
		/* forged pages can have far more memory than the process has made */
		if (p->end - p->start > x->walk) {
			x->outside += p->end - p->start;
			continue;
		}
		x->walk -= p->end - p->start;
		if (!counts)
			p->starts = xcalloc(STARTS, sizeof(*p->starts));
		page_walk(x, p);
	}
	stores_add(x);
	for (uint32_t i = 0; i < x->maps.n; i++)
		if (x->maps.v[i].n)
			graph_count(x->graph, x->maps.v[i].class - 1, x->maps.v[i].n,
				    x->maps.v[i].bytes);
}
