/* Objects and bytes by class. */
#include <assert.h>

#include "graph_tree.h"

static int compare_bytes(const void *x, const void *y)
{
	const struct graph_row *a = x, *b = y;

	return COMPARE(b->bytes, a->bytes) ?: COMPARE(b->n, a->n) ?: COMPARE(a->class, b->class);
}

static int compare_retained(const void *x, const void *y)
{
	const struct graph_row *a = x, *b = y;

	return COMPARE(b->retained, a->retained) ?: compare_bytes(x, y);
}

static struct graph_row *rows_begin(const struct graph *g)
{
	struct graph_row *v = xcalloc((size_t)g->classes.n + 1, sizeof(*v));

	for (uint32_t i = 0; i < g->classes.n; i++)
		v[i].class = i;
	return v;
}

/* Drops the classes without objects, and sorts the others. */
static void rows_end(const struct graph *g, struct graph_row *v,
		     int (*compare)(const void *, const void *), struct graph_rows *ret)
{
	*ret = (struct graph_rows){ .v = v };
	for (uint32_t i = 0; i < g->classes.n; i++)
		if (v[i].n)
			v[ret->n++] = v[i];
	qsort(v, ret->n, sizeof(*v), compare);
}

static void row_add(const struct graph *g, struct graph_row *v, graph_id id)
{
	struct graph_row *r = &v[graph_class_at(g, id)];

	r->n++;
	r->bytes += graph_size_at(g, id);
}

void graph_histogram(struct graph *g, enum graph_which which, struct graph_rows *ret)
{
	struct graph_row *v = rows_begin(g);

	assert(which == GRAPH_ALL || !g->wanted.counts);
	for (uint32_t i = 0; g->wanted.counts && i < g->classes.n; i++) {
		v[i].n = g->classes.v[i].n;
		v[i].bytes = g->classes.v[i].bytes;
	}
	if (which != GRAPH_ALL)
		graph_dominators(g);
	for (graph_id id = 0; id < g->nobjects; id++)
		if (which == GRAPH_ALL || graph_bit(g->reached, id) == (which == GRAPH_REACHABLE))
			row_add(g, v, id);
	rows_end(g, v, compare_bytes, ret);
}

void graph_histogram_retained(struct graph *g, struct graph_rows *ret)
{
	struct graph_row *v = rows_begin(g);
	uint32_t *inside = xcalloc((size_t)g->classes.n + 1, sizeof(*inside));
	struct graph_descent d;
	bool entered;
	graph_id id;

	graph_descent_init(&d, g, GRAPH_NONE);
	while (graph_descent_next(&d, &id, &entered)) {
		uint32_t class = graph_class_at(g, id);

		if (!entered) {
			inside[class]--;
			continue;
		}
		row_add(g, v, id);
		if (!inside[class]++)
			v[class].retained += g->retained[id];
	}
	graph_descent_fini(&d);
	free(inside);
	rows_end(g, v, compare_retained, ret);
}

void graph_histogram_below(struct graph *g, graph_id top, struct graph_rows *ret)
{
	struct graph_row *v = rows_begin(g);
	struct graph_descent d;
	bool entered;
	graph_id id;

	graph_descent_init(&d, g, top);
	while (graph_descent_next(&d, &id, &entered))
		if (entered)
			row_add(g, v, id);
	graph_descent_fini(&d);
	rows_end(g, v, compare_bytes, ret);
}

void graph_rows_free(struct graph_rows *r)
{
	free(r->v);
	*r = (struct graph_rows){ 0 };
}
