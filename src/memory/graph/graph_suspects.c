/* Leak suspects, by the rules of Eclipse's Memory Analyzer. */
#include "graph_private.h"

enum {
	DROP_PERCENT = 70,
	SUSPECTS_MAX = 100, /* each has at least 1 % of all bytes */
};

static int compare_suspects(const void *x, const void *y)
{
	const struct graph_suspect *a = x, *b = y;

	return COMPARE(b->retained, a->retained) ?: COMPARE(a->id, b->id);
}

static graph_id biggest_child(struct graph *g, graph_id id)
{
	size_t n;
	const graph_id *v = graph_dominated(g, id, &n);
	graph_id best = GRAPH_NONE;

	for (size_t i = 0; i < n; i++)
		if (best == GRAPH_NONE || g->retained[v[i]] > g->retained[best])
			best = v[i];
	return best;
}

/* Goes down from a suspect to the object where its memory accumulates. Objects of one class behind
 * each other, as in a list, are one step, and the first of them stands for all. */
static void point_find(struct graph *g, struct graph_suspect *s)
{
	graph_id id = s->id, child;
	struct graph_rows rows;
	size_t n;

	s->point = id;
	while ((child = biggest_child(g, id)) != GRAPH_NONE &&
	       g->retained[child] >= g->retained[id] / 100.0 * DROP_PERCENT) {
		if (graph_class_at(g, child) != graph_class_at(g, id))
			s->point = child;
		id = child;
	}
	s->point_retained = g->retained[s->point];
	graph_dominated(g, s->point, &n);
	s->point_held = n;
	graph_histogram_below(g, s->point, &rows);
	s->below = rows.v[0];
	graph_rows_free(&rows);
}

void graph_suspects(struct graph *g, unsigned percent, struct graph_suspects *ret)
{
	VEC(struct graph_suspect) v = { 0 };
	size_t n;
	const graph_id *top = graph_dominated(g, GRAPH_NONE, &n);
	double limit = g->reach.bytes / 100.0 * percent;
	struct graph_suspect *by_class = xcalloc((size_t)g->classes.n + 1, sizeof(*by_class));

	for (size_t i = 0; i < n; i++) {
		struct graph_suspect *c = &by_class[graph_class_at(g, top[i])];

		if (g->retained[top[i]] >= limit && g->reach.bytes) {
			vec_push(&v, (struct graph_suspect){ .id = top[i],
							     .class = graph_class_at(g, top[i]),
							     .n = 1,
							     .retained = g->retained[top[i]] });
			continue;
		}
		c->n++;
		c->retained += g->retained[top[i]];
	}
	for (uint32_t i = 0; i < g->classes.n; i++)
		if (by_class[i].n && by_class[i].retained >= limit && g->reach.bytes)
			vec_push(&v, (struct graph_suspect){ .id = GRAPH_NONE,
							     .class = i,
							     .n = by_class[i].n,
							     .retained = by_class[i].retained,
							     .point = GRAPH_NONE });
	free(by_class);
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), compare_suspects);
	if (v.n > SUSPECTS_MAX)
		v.n = SUSPECTS_MAX;
	for (uint32_t i = 0; i < v.n; i++)
		if (v.v[i].id != GRAPH_NONE)
			point_find(g, &v.v[i]);
	*ret = (struct graph_suspects){ v.v, v.n };
}

void graph_suspects_free(struct graph_suspects *s)
{
	free(s->v);
	*s = (struct graph_suspects){ 0 };
}
