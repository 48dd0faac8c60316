/* Reachability, immediate dominators and retained sizes.
 *
 * Semi-NCA (Georgiadis: "Linear-time algorithms for dominators and related problems", 2005) on the
 * numbers of a depth-first walk from a root above all roots, whose number is 0. An edge from a
 * smaller to a larger number gives its semidominator at once; only the others are kept for the
 * second pass. Nearest common ancestors are found by jump pointers, so that no input takes more
 * than O(n log n) steps there.
 */
#include "graph_private.h"

struct dominators {
	struct graph *g;
	uint32_t n; /* objects that are reached, and the root above all: numbers are below n */
	uint32_t *number;  /* of an object; 0: not reached */
	uint32_t *object;  /* by number */
	uint32_t *parent;  /* in the tree of the walk, by number */
	uint32_t *next;    /* edges that the walk has taken; then the semidominator */
	uint32_t *offset;  /* of edges that come from larger numbers, by number */
	uint32_t *sources; /* of those */
};

static void visit(struct dominators *d, graph_id id, uint32_t parent)
{
	d->number[id] = d->n;
	d->object[d->n] = id;
	d->parent[d->n] = parent;
	d->next[d->n] = 0;
	d->n++;
}

static void walk_from(struct dominators *d, graph_id root)
{
	uint32_t at;
	graph_id to;

	if (d->number[root])
		return;
	visit(d, root, 0);
	for (at = d->n - 1; at;) {
		if (!graph_edge_at(d->g, d->object[at], d->next[at], &to)) {
			at = d->parent[at];
			continue;
		}
		d->next[at]++;
		if (d->number[to])
			continue;
		visit(d, to, at);
		at = d->n - 1;
	}
}

/* The first pass over edges: semidominators by smaller numbers, and counts of the others. With
 * `fill`, the second: the others themselves. */
static void edges_take(struct dominators *d, bool fill)
{
	struct graph *g = d->g;

	for (graph_id id = 0; id < g->nobjects; id++) {
		uint32_t from = d->number[id];
		graph_id target;

		if (!from)
			continue;
		for (uint32_t k = 0; graph_edge_at(g, id, k, &target); k++) {
			uint32_t to = d->number[target];

			if (from > to && fill)
				d->sources[d->offset[to]++] = from;
			else if (from > to)
				d->offset[to]++;
			else if (from < d->next[to])
				d->next[to] = from;
		}
	}
}

static void edges_prepare(struct dominators *d)
{
	uint32_t sum = 0;

	for (uint32_t w = 1; w < d->n; w++)
		d->next[w] = d->parent[w];
	for (size_t i = 0; i < d->g->nroots; i++)
		d->next[d->number[d->g->roots[i].id]] = 0;
	d->offset = graph_alloc(&d->g->memory, ((size_t)d->n + 1) * sizeof(*d->offset));
	edges_take(d, false);
	for (uint32_t w = 0; w <= d->n; w++) {
		uint32_t count = w < d->n ? d->offset[w] : 0;

		d->offset[w] = sum;
		sum += count;
	}
	d->sources = graph_alloc(&d->g->memory, ((size_t)sum + 1) * sizeof(*d->sources));
	edges_take(d, true);
	/* Each offset now is the end of its edges, and the beginning of the next number's. */
}

/* Returns the least semidominator on the way up from v through numbers above w, and shortens the
 * way. The way down again is kept in the ancestors themselves. */
static uint32_t least_above(uint32_t *ancestor, uint32_t *least, uint32_t v, uint32_t w)
{
	uint32_t below = 0, best, top;

	while (ancestor[v] > w) {
		uint32_t up = ancestor[v];

		ancestor[v] = below;
		below = v;
		v = up;
	}
	best = least[v];
	top = ancestor[v];
	while (below) {
		uint32_t down = ancestor[below];

		if (least[below] < best)
			best = least[below];
		least[below] = best;
		ancestor[below] = top;
		below = down;
	}
	return best;
}

static void semidominators(struct dominators *d, uint32_t *ancestor, uint32_t *least)
{
	uint32_t *semi = d->next;

	for (uint32_t w = d->n - 1; w > 0; w--) {
		uint32_t s = semi[w];

		for (uint32_t i = d->offset[w - 1]; i < d->offset[w]; i++) {
			uint32_t v = least_above(ancestor, least, d->sources[i], w);

			if (v < s)
				s = v;
		}
		semi[w] = least[w] = s;
	}
}

/* Makes parent[] the immediate dominators. `jump` and `depth` are room for as many numbers. */
static void nearest_ancestors(struct dominators *d, uint32_t *jump, uint32_t *depth)
{
	uint32_t *dom = d->parent, *semi = d->next;

	jump[0] = depth[0] = 0;
	for (uint32_t w = 1; w < d->n; w++) {
		uint32_t x = dom[w], j;

		while (x > semi[w])
			x = jump[x] > semi[w] ? jump[x] : dom[x];
		dom[w] = x;
		depth[w] = depth[x] + 1;
		j = jump[x];
		jump[w] = depth[x] - depth[j] == depth[j] - depth[jump[j]] ? jump[j] : x;
	}
}

/* Notes an object once, so that the list has no more entries than there are objects. */
static void reach_one(struct graph *g, struct graph_list *open, graph_id id)
{
	if (graph_bit(g->reached_weakly, id))
		return;
	graph_bit_set(g->reached_weakly, id);
	g->reach.weak++;
	g->reach.weak_bytes += graph_size(g, id);
	*(graph_id *)graph_list_add(g, open, sizeof(id), 1) = id;
}

/* Marks what is reached only when weak references count. */
static void reach_weakly(struct graph *g)
{
	struct graph_list open = { 0 };
	size_t words = (size_t)g->nobjects / 64 + 1;

	g->reached_weakly = graph_alloc(&g->memory, words * sizeof(*g->reached));
	memcpy(g->reached_weakly, g->reached, words * sizeof(*g->reached));
	for (uint32_t i = 0; i < g->weak.n; i++)
		if (graph_bit(g->reached, (graph_id)g->weak.v[i].from))
			reach_one(g, &open, (graph_id)g->weak.v[i].to);
	while (open.n) {
		graph_id id = ((graph_id *)open.v)[--open.n], to;
		uint32_t weak;

		for (uint32_t k = 0; graph_edge_at(g, id, k, &to); k++)
			reach_one(g, &open, to);
		weak = partition_point(g->weak.n, k, g->weak.v[k].from < id);
		for (; weak < g->weak.n && g->weak.v[weak].from == id; weak++)
			reach_one(g, &open, (graph_id)g->weak.v[weak].to);
	}
	graph_release(open.v);
}

static void sizes_retained(struct dominators *d)
{
	struct graph *g = d->g;
	struct graph_reach *r = &g->reach;
	const uint32_t *dom = d->parent;

	g->retained = graph_alloc(&g->memory, ((size_t)g->nobjects + 1) * sizeof(*g->retained));
	for (uint32_t w = 1; w < d->n; w++) {
		graph_id id = d->object[w];

		g->retained[id] = graph_size(g, id);
		r->bytes += g->retained[id];
	}
	for (uint32_t w = d->n - 1; w > 0; w--)
		if (dom[w])
			g->retained[d->object[dom[w]]] += g->retained[d->object[w]];
	g->dominator = graph_alloc(&g->memory, ((size_t)g->nobjects + 1) * sizeof(*g->dominator));
	memset(g->dominator, 0xff, ((size_t)g->nobjects + 1) * sizeof(*g->dominator));
	for (uint32_t w = 1; w < d->n; w++)
		if (dom[w])
			g->dominator[d->object[w]] = d->object[dom[w]];
	r->objects = d->n - 1;
}

void graph_dominators(struct graph *g)
{
	size_t room = ((size_t)g->nobjects + 1) * sizeof(uint32_t);
	struct dominators d = { .g = g, .n = 1 };
	uint32_t *ancestor, *least;

	if (g->dominator)
		return;
	d.number = graph_alloc(&g->memory, room);
	d.object = graph_alloc(&g->memory, room);
	d.parent = graph_alloc(&g->memory, room);
	d.next = graph_alloc(&g->memory, room);
	for (size_t i = 0; i < g->nroots; i++)
		walk_from(&d, g->roots[i].id);
	edges_prepare(&d);
	g->reached = graph_alloc(&g->memory, ((size_t)g->nobjects / 64 + 1) * sizeof(*g->reached));
	for (graph_id id = 0; id < g->nobjects; id++)
		if (d.number[id])
			graph_bit_set(g->reached, id);
	graph_release(d.number);
	ancestor = graph_alloc(&g->memory, d.n * sizeof(*ancestor));
	memcpy(ancestor, d.parent, d.n * sizeof(*ancestor));
	least = graph_alloc(&g->memory, d.n * sizeof(*least));
	semidominators(&d, ancestor, least);
	graph_release(d.offset);
	graph_release(d.sources);
	nearest_ancestors(&d, ancestor, least);
	graph_release(ancestor);
	graph_release(least);
	graph_release(d.next);
	sizes_retained(&d);
	graph_release(d.object);
	graph_release(d.parent);
	reach_weakly(g);
	g->reach.unreachable = g->totals.objects - g->reach.objects - g->reach.weak;
	g->reach.unreachable_bytes = g->totals.bytes - g->reach.bytes - g->reach.weak_bytes;
}

const struct graph_reach *graph_reach(struct graph *g)
{
	graph_dominators(g);
	return &g->reach;
}

bool graph_reachable(struct graph *g, graph_id id)
{
	graph_dominators(g);
	return graph_bit(g->reached, id);
}

graph_id graph_dominator(struct graph *g, graph_id id)
{
	graph_dominators(g);
	return g->dominator[id];
}

uint64_t graph_retained(struct graph *g, graph_id id)
{
	graph_dominators(g);
	return g->retained[id];
}
