/* The dominator tree from above: the objects that each object dominates, and walks down. */
#include "graph_tree.h"

static void children_make(struct graph *g)
{
	uint32_t *at, n = g->nobjects;

	graph_dominators(g);
	at = graph_alloc(&g->memory, ((size_t)n + 2) * sizeof(*at));
	for (graph_id id = 0; id < n; id++)
		if (graph_bit(g->reached, id))
			at[(g->dominator[id] == GRAPH_NONE ? n : g->dominator[id]) + 1]++;
	for (uint32_t i = 0; i <= n; i++)
		at[i + 1] += at[i];
	g->children = graph_alloc_unset(&g->memory, ((size_t)n + 1) * sizeof(*g->children));
	for (graph_id id = 0; id < n; id++)
		if (graph_bit(g->reached, id))
			g->children[at[g->dominator[id] == GRAPH_NONE ? n : g->dominator[id]]++] =
				id;
	memmove(at + 1, at, ((size_t)n + 1) * sizeof(*at));
	at[0] = 0;
	g->child_offset = at;
}

const graph_id *graph_dominated(struct graph *g, graph_id id, size_t *ret_n)
{
	uint32_t i = id == GRAPH_NONE ? g->nobjects : id;

	if (!g->child_offset)
		children_make(g);
	*ret_n = g->child_offset[i + 1] - g->child_offset[i];
	return g->children + g->child_offset[i];
}

static void enter(struct graph_descent *d, graph_id id)
{
	uint32_t i = id == GRAPH_NONE ? d->g->nobjects : id;

	*(uint32_t *)graph_list_add(d->g, &d->next, sizeof(uint32_t), 1) = d->g->child_offset[i];
	d->at = id;
}

void graph_descent_init(struct graph_descent *d, struct graph *g, graph_id top)
{
	size_t n;

	*d = (struct graph_descent){ .g = g, .top = top };
	graph_dominated(g, top, &n);
	enter(d, top);
}

bool graph_descent_next(struct graph_descent *d, graph_id *ret, bool *ret_entered)
{
	const struct graph *g = d->g;
	uint32_t i = d->at == GRAPH_NONE ? g->nobjects : d->at, *next;

	if (d->done)
		return false;
	if (!d->begun && d->top != GRAPH_NONE) {
		d->begun = true;
		*ret = d->top;
		*ret_entered = true;
		return true;
	}
	next = (uint32_t *)d->next.v + d->next.n - 1;
	if (*next < g->child_offset[i + 1]) {
		*ret = g->children[(*next)++];
		*ret_entered = true;
		enter(d, *ret);
		return true;
	}
	d->done = d->at == d->top;
	if (d->at == GRAPH_NONE)
		return false;
	*ret = d->at;
	*ret_entered = false;
	d->at = g->dominator[d->at];
	d->next.n--;
	return true;
}

void graph_descent_fini(struct graph_descent *d)
{
	graph_release(d->next.v);
}
