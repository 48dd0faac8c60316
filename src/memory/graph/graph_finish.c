/* graph_finish(): from objects by arrival to the compact form by address. */
#include <assert.h>
#include <errno.h>

#include "base/parallel.h"
#include "graph_private.h"

enum { OBJECTS_OF_THREADS = 1 << 17 }; /* fewer are not worth a thread */

static int compare_apart(const void *x, const void *y)
{
	const struct graph_apart *a = x, *b = y;

	return COMPARE(a->from, b->from) ?: COMPARE(a->to, b->to);
}

static int compare_roots(const void *x, const void *y)
{
	const struct graph_root_of *a = x, *b = y;

	return COMPARE(a->id, b->id);
}

unsigned graph_threads(const struct graph *g)
{
	return g->nobjects < OBJECTS_OF_THREADS ? 1 : parallel_threads();
}

/* The parts of a graph whose objects get their ids. */
struct finishing {
	struct graph *g;
	struct graph_part *parts;
	unsigned n;
	uint32_t *labels, *to; /* of all parts, by id */
};

/* The ids take the place of the addresses. */
static graph_id *part_ids(const struct graph_part *p)
{
	return (graph_id *)(void *)p->addresses;
}

static uint64_t address_at(const struct graph_part *p, uint32_t i)
{
	uint64_t address;

	memcpy(&address, (const char *)p->addresses + i * sizeof(address), sizeof(address));
	return address;
}

static void ids_find(void *arg, unsigned part)
{
	struct finishing *f = arg;
	struct graph_part *p = &f->parts[part];
	graph_id *ids = part_ids(p);

	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = graph_index_find(&f->g->index, address_at(p, i));

		memcpy(&ids[i], &id, sizeof(id));
	}
}

/* Gives each object by arrival its id; GRAPH_NONE: its address is taken. */
static void ids_by_arrival(struct finishing *f)
{
	struct graph *g = f->g;
	uint64_t objects = 0, *seen;

	parallel_run(ids_find, f, f->n);
	for (unsigned k = 0; k < f->n; k++) {
		struct graph_part *p = &f->parts[k];

		objects += p->n;
		p->addresses = graph_realloc(&g->memory, p->addresses, p->n * sizeof(graph_id));
	}
	if (g->index.n == objects)
		return;
	seen = graph_alloc(&g->memory, (g->index.n / 64 + 1) * sizeof(*seen));
	for (unsigned k = 0; k < f->n; k++) {
		graph_id *ids = part_ids(&f->parts[k]);

		for (uint32_t i = 0; i < f->parts[k].n; i++) {
			if (!graph_bit(seen, ids[i])) {
				graph_bit_set(seen, ids[i]);
				continue;
			}
			ids[i] = GRAPH_NONE;
			g->totals.repeated++;
		}
	}
	graph_release(seen);
}

/* Turns the coded addresses of a part's references into ids, in place, and notes how many each
 * object has. */
static void edges_resolve(void *arg, unsigned part)
{
	struct finishing *f = arg;
	struct graph *g = f->g;
	struct graph_part *p = &f->parts[part];
	uint32_t *to = p->to.v, *labels = p->labels.v;
	const graph_id *ids = part_ids(p);
	size_t at = 0, kept = 0, edge = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		size_t first = kept;

		for (uint32_t k = 0; k < p->degree[i]; k++, edge++) {
			graph_id id = graph_index_find(&g->index, graph_decode(p, &at));

			if (ids[i] == GRAPH_NONE)
				continue;
			if (id == GRAPH_NONE) {
				p->dangling++;
				continue;
			}
			to[kept] = id;
			if (labels)
				labels[kept] = labels[edge];
			kept++;
		}
		if (ids[i] != GRAPH_NONE)
			g->offset[ids[i]] = (uint32_t)(kept - first);
	}
	p->to.n = kept;
}

/* Copies the references and kinds of a part to where they belong by the ids. */
static void part_move(void *arg, unsigned part)
{
	struct finishing *f = arg;
	const struct graph *g = f->g;
	const struct graph_part *p = &f->parts[part];
	const graph_id *ids = part_ids(p);
	const uint32_t *to = p->to.v, *labels = p->labels.v;
	size_t at = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t offset, n;

		if (ids[i] == GRAPH_NONE)
			continue;
		g->kind[ids[i]] = p->kind[i];
		offset = g->offset[ids[i]];
		n = g->offset[ids[i] + 1] - offset;
		for (uint32_t k = 0; k < n; k++)
			f->to[offset + k] = to[at + k];
		for (uint32_t k = 0; labels && k < n; k++)
			f->labels[offset + k] = labels[at + k];
		at += n;
	}
}

static bool in_order(const struct graph_part *p)
{
	const graph_id *ids = part_ids(p);

	for (uint32_t i = 0; i < p->n; i++)
		if (ids[i] != i)
			return false;
	return true;
}

static void offsets_sum(struct graph *g)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i <= g->index.n; i++) {
		uint32_t degree = i < g->index.n ? g->offset[i] : 0;

		g->offset[i] = sum;
		sum += degree;
	}
}

/* Puts objects and their references in the order of ids. */
static void objects_order(struct finishing *f)
{
	struct graph *g = f->g;
	struct graph_part *p = f->parts;
	size_t n = (size_t)g->index.n;
	bool same;

	ids_by_arrival(f);
	g->offset = graph_alloc_unset(&g->memory, (n + 1) * sizeof(*g->offset));
	parallel_run(edges_resolve, f, f->n);
	offsets_sum(g);
	for (unsigned k = 0; k < f->n; k++) {
		g->to.n += p[k].to.n;
		g->totals.dangling += p[k].dangling;
		graph_release(p[k].degree);
		p[k].degree = NULL;
	}
	same = f->n == 1 && in_order(p);
	graph_values_order(g, same || !f->n ? NULL : part_ids(p));
	graph_numbers_order(g, same || !f->n ? NULL : part_ids(p));
	if (same) {
		g->kind = graph_realloc(&g->memory, p->kind, n * sizeof(*p->kind));
		g->to.v = graph_realloc(&g->memory, p->to.v, (g->to.n + 1) * sizeof(uint32_t));
		if (p->labels.v)
			g->labels.v = graph_realloc(&g->memory, p->labels.v,
						    (g->to.n + 1) * sizeof(uint32_t));
		p->kind = NULL;
		p->to.v = p->labels.v = NULL;
		return;
	}
	g->kind = graph_alloc_unset(&g->memory, (n + 1) * sizeof(*g->kind));
	g->to.v = f->to = graph_alloc_unset(&g->memory, (g->to.n + 1) * sizeof(*f->to));
	if (g->wanted.labels)
		g->labels.v = f->labels =
			graph_alloc_unset(&g->memory, (g->to.n + 1) * sizeof(*f->labels));
	parallel_run(part_move, f, f->n);
}

/* Turns the addresses of references that are kept apart into ids, and sorts them. */
static uint32_t apart_resolve(struct graph *g, struct graph_apart *v, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct graph_apart a = v[i];

		a.from = graph_index_find(&g->index, a.from);
		a.to = graph_index_find(&g->index, a.to);
		if (a.from == GRAPH_NONE || a.to == GRAPH_NONE)
			g->totals.dangling++;
		else
			v[kept++] = a;
	}
	if (kept)
		qsort(v, kept, sizeof(*v), compare_apart);
	return kept;
}

/* Adds the strong references that were kept apart to the others. */
static struct err *more_insert(struct graph *g)
{
	uint32_t n = apart_resolve(g, g->more.v, g->more.n), k = 0;
	size_t from = g->to.n, into = g->to.n + n;

	/* graph_edge_at() adds a reference from each object to its class. 32 bits hold the sum. */
	if (into + g->nobjects > g->references_max)
		return err_new(EFBIG, "the heap has more than %llu references",
			       (unsigned long long)g->references_max);
	g->to.v = graph_realloc(&g->memory, g->to.v, (into + 1) * sizeof(uint32_t));
	if (g->labels.v)
		g->labels.v = graph_realloc(&g->memory, g->labels.v, (into + 1) * sizeof(uint32_t));
	g->to.n = into;
	for (uint32_t i = n; i-- > 0;) {
		const struct graph_apart *a = &g->more.v[i];
		uint32_t end = g->offset[a->from + 1], *to = g->to.v, *labels = g->labels.v;
		size_t move = from - end;

		from = end;
		into -= move;
		memmove(to + into, to + from, move * sizeof(*to));
		if (labels)
			memmove(labels + into, labels + from, move * sizeof(*labels));
		to[--into] = (uint32_t)a->to;
		if (labels)
			labels[into] = a->label;
	}
	for (uint32_t id = 0; n && id <= g->index.n; id++) {
		while (k < n && g->more.v[k].from < id)
			k++;
		g->offset[id] += k;
	}
	vec_fini(&g->more);
	return NULL;
}

static void roots_resolve(struct graph *g)
{
	const struct graph_raw_root *raw = g->raw_roots.v;

	g->roots = xmalloc((g->raw_roots.n + 1) * sizeof(*g->roots));
	for (size_t i = 0; i < g->raw_roots.n; i++) {
		graph_id id = graph_index_find(&g->index, raw[i].address);

		if (id == GRAPH_NONE)
			g->totals.dangling++;
		else
			g->roots[g->nroots++] = (struct graph_root_of){ id, raw[i].kind };
	}
	qsort(g->roots, g->nroots, sizeof(*g->roots), compare_roots);
	graph_release(g->raw_roots.v);
	g->raw_roots = (struct graph_list){ 0 };
}

static int compare_class_objects(const void *x, const void *y)
{
	const struct graph_class_of *a = x, *b = y;

	return COMPARE(a->id, b->id) ?: COMPARE(a->class, b->class);
}

static void classes_finish(struct graph *g)
{
	for (uint32_t i = 0; i < g->classes.n; i++) {
		struct graph_class *c = &g->classes.v[i];

		c->id = c->object ? graph_index_find(&g->index, c->object) : GRAPH_NONE;
		if (c->id != GRAPH_NONE)
			vec_push(&g->by_object, (struct graph_class_of){ c->id, i });
		if (c->size > GRAPH_SIZE_MAX)
			c->size = GRAPH_SIZE_MAX;
		vec_push(&g->class_texts,
			 c->name ? NULL : xasprintf("class 0x%llx", (unsigned long long)c->key));
	}
	if (g->by_object.n)
		qsort(g->by_object.v, g->by_object.n, sizeof(*g->by_object.v),
		      compare_class_objects);
}

static struct err *damaged_sizes(uint64_t some, uint64_t objects)
{
	return err_new(EBADMSG,
		       "its sizes are damaged: %llu of its %llu objects have more than 2^60 bytes",
		       (unsigned long long)some, (unsigned long long)objects);
}

/* Sums a graph that counts. */
static struct err *counts_finish(struct graph *g)
{
	for (uint32_t i = 0; i < g->classes.n; i++)
		g->totals.objects += g->classes.v[i].n += g->classes.v[i].n_of_size;
	for (uint32_t i = 0; i < g->classes.n; i++) {
		struct graph_class *c = &g->classes.v[i];
		uint64_t more;

		if (__builtin_mul_overflow(c->n_of_size, c->size, &more) ||
		    __builtin_add_overflow(c->bytes, more, &c->bytes) ||
		    __builtin_add_overflow(g->totals.bytes, c->bytes, &g->totals.bytes) ||
		    g->totals.bytes > GRAPH_BYTES_MAX)
			return damaged_sizes(c->n, g->totals.objects);
	}
	return NULL;
}

/* Takes the parts together. */
static struct err *parts_finish(struct graph *g)
{
	struct graph_part parts[PARALLEL_MAX];
	struct finishing f = { .g = g, .parts = parts };
	uint64_t objects = g->made.n;

	for (uint32_t i = 0; i < g->joined.n; i++)
		objects += g->joined.v[i].n;
	assert(g->joined.n < PARALLEL_MAX);
	if (objects > GRAPH_OBJECTS_MAX)
		return err_new(EFBIG, "the heap has more than %u objects", GRAPH_OBJECTS_MAX);
	if (g->made.n)
		parts[f.n++] = g->made;
	for (uint32_t i = 0; i < g->joined.n; i++)
		parts[f.n++] = g->joined.v[i];
	g->made = (struct graph_part){ 0 };
	g->joined.n = 0;
	graph_index_make(&g->index, &g->memory, parts, f.n);
	objects_order(&f);
	for (unsigned k = 0; k < f.n; k++)
		graph_part_free(&parts[k]);
	g->nobjects = g->index.n;
	return NULL;
}

struct err *graph_finish(struct graph *g)
{
	struct err *e = g->failed;

	g->failed = NULL;
	if (e)
		return e;
	if (g->wanted.counts) {
		classes_finish(g);
		return counts_finish(g);
	}
	e = parts_finish(g) ?: more_insert(g);
	if (e)
		return e;
	g->weak.n = apart_resolve(g, g->weak.v, g->weak.n);
	roots_resolve(g);
	classes_finish(g);
	graph_kinds_finish(g);
	g->totals.objects = g->nobjects;
	g->totals.edges = g->to.n;
	g->totals.weak_edges = g->weak.n;
	g->totals.roots = g->nroots;
	/* all other sums are of a part of the objects */
	for (uint32_t i = 0; i < g->nobjects; i++) {
		g->totals.bytes += graph_size_at(g, i);
		if (g->totals.bytes > GRAPH_BYTES_MAX)
			return damaged_sizes(i + 1, g->nobjects);
	}
	return NULL;
}
