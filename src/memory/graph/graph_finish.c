/* graph_finish(): from objects by arrival to the compact form by address. */
#include <errno.h>

#include "graph_private.h"

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

static int compare_big_sizes(const void *x, const void *y)
{
	const struct graph_big_size *a = x, *b = y;

	return COMPARE(a->at, b->at);
}

/* Gives each object by arrival its id; GRAPH_NONE: its address is taken. Returns NULL when arrival
 * is the order of addresses. */
static graph_id *ids_by_arrival(struct graph *g)
{
	uint64_t *seen = graph_alloc(&g->memory, (g->nobjects / 64 + 1) * sizeof(*seen));
	graph_id *ids = graph_alloc(&g->memory, ((size_t)g->nobjects + 1) * sizeof(*ids));
	bool same = true;

	for (uint32_t i = 0; i < g->nobjects; i++) {
		graph_id id = graph_index_find(&g->index, g->addresses[i]);

		if (graph_bit(seen, id)) {
			id = GRAPH_NONE;
			g->totals.repeated++;
		} else {
			graph_bit_set(seen, id);
		}
		ids[i] = id;
		same &= id == i;
	}
	graph_release(seen);
	graph_release(g->addresses);
	g->addresses = NULL;
	if (!same)
		return ids;
	graph_release(ids);
	return NULL;
}

/* Turns the coded addresses of edges into ids, in place. */
static void edges_resolve(struct graph *g, const graph_id *ids)
{
	uint32_t *to = g->to.v, *labels = g->labels.v;
	size_t at = 0, kept = 0, edge = 0;

	for (uint32_t i = 0; i < g->nobjects; i++) {
		size_t first = kept;

		for (uint32_t k = 0; k < g->degree[i]; k++, edge++) {
			graph_id id = graph_index_find(&g->index, graph_decode(g, &at));

			if (ids && ids[i] == GRAPH_NONE)
				continue;
			if (id == GRAPH_NONE) {
				g->totals.dangling++;
				continue;
			}
			to[kept] = id;
			if (labels)
				labels[kept] = labels[edge];
			kept++;
		}
		g->degree[i] = (uint32_t)(kept - first);
	}
	g->to.n = kept;
	g->to.v = graph_realloc(&g->memory, g->to.v, (kept + 1) * sizeof(*to));
	if (labels)
		g->labels.v = graph_realloc(&g->memory, g->labels.v, (kept + 1) * sizeof(*to));
}

/* Copies the runs of an array of edges to where the objects' offsets are. */
static uint32_t *edges_move(struct graph *g, const graph_id *ids, uint32_t *v)
{
	uint32_t *moved = graph_alloc(&g->memory, (g->to.n + 1) * sizeof(*moved));
	size_t at = 0;

	for (uint32_t i = 0; i < g->nobjects; i++) {
		if (ids[i] != GRAPH_NONE)
			memcpy(moved + g->offset[ids[i]], v + at, g->degree[i] * sizeof(*v));
		at += g->degree[i];
	}
	graph_release(v);
	return moved;
}

static uint32_t *objects_move(struct graph *g, const graph_id *ids, uint32_t *v)
{
	uint32_t *moved = graph_alloc(&g->memory, ((size_t)g->index.n + 1) * sizeof(*moved));

	for (uint32_t i = 0; i < g->nobjects; i++)
		if (ids[i] != GRAPH_NONE)
			moved[ids[i]] = v[i];
	graph_release(v);
	return moved;
}

/* Puts objects and their edges in the order of ids. ids NULL: they are. */
static void objects_order(struct graph *g, graph_id *ids)
{
	uint32_t kept = 0, sum = 0;

	g->offset = graph_alloc(&g->memory, ((size_t)g->index.n + 1) * sizeof(*g->offset));
	for (uint32_t i = 0; i < g->nobjects; i++) {
		graph_id id = ids ? ids[i] : i;

		if (id != GRAPH_NONE)
			g->offset[id] = g->degree[i];
	}
	for (uint32_t i = 0; i <= g->index.n; i++) {
		uint32_t degree = i < g->index.n ? g->offset[i] : 0;

		g->offset[i] = sum;
		sum += degree;
	}
	if (ids) {
		g->to.v = edges_move(g, ids, g->to.v);
		if (g->labels.v)
			g->labels.v = edges_move(g, ids, g->labels.v);
	}
	graph_release(g->degree);
	g->degree = NULL;
	graph_values_order(g, ids);
	graph_numbers_order(g, ids);
	if (!ids)
		return;
	g->class = objects_move(g, ids, g->class);
	g->sizes = objects_move(g, ids, g->sizes);
	for (uint32_t i = 0; i < g->big_sizes.n; i++) {
		g->big_sizes.v[kept] = g->big_sizes.v[i];
		g->big_sizes.v[kept].at = ids[g->big_sizes.v[i].at];
		kept += g->big_sizes.v[kept].at != GRAPH_NONE;
	}
	g->big_sizes.n = kept;
	if (kept)
		qsort(g->big_sizes.v, kept, sizeof(*g->big_sizes.v), compare_big_sizes);
	graph_release(ids);
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

struct err *graph_finish(struct graph *g)
{
	struct err *e = g->failed;
	graph_id *ids;

	if (!e)
		graph_index_make(&g->index, &g->memory, g->addresses, g->nobjects);
	g->failed = NULL;
	if (e)
		return e;
	if (g->wanted.counts) {
		classes_finish(g);
		return counts_finish(g);
	}
	ids = ids_by_arrival(g);
	edges_resolve(g, ids);
	objects_order(g, ids);
	g->nobjects = g->index.n;
	e = more_insert(g);
	if (e)
		return e;
	g->weak.n = apart_resolve(g, g->weak.v, g->weak.n);
	roots_resolve(g);
	classes_finish(g);
	g->totals.objects = g->nobjects;
	g->totals.edges = g->to.n;
	g->totals.weak_edges = g->weak.n;
	g->totals.roots = g->nroots;
	/* all other sums are of a part of the objects */
	for (uint32_t i = 0; i < g->nobjects; i++) {
		g->totals.bytes += graph_size(g, i);
		if (g->totals.bytes > GRAPH_BYTES_MAX)
			return damaged_sizes(i + 1, g->nobjects);
	}
	return NULL;
}
