/* Reachability, immediate dominators and retained sizes.
 *
 * Semi-NCA (Georgiadis: "Linear-time algorithms for dominators and related problems", 2005) on the
 * numbers of a depth-first walk from a root above all roots, whose number is 0. A reference from a
 * smaller to a larger number gives its semidominator in the walk; only the others are kept. No
 * semidominator is less than a root's, so that none to roots are kept: most classes are roots, and
 * each object refers to one. Nearest common ancestors are found by jump pointers, so that no input
 * takes more than O(n log n) steps there.
 */
#include "base/parallel.h"
#include "graph_private.h"

struct dominators {
	struct graph *g;
	uint32_t n; /* objects that are reached, and the root above all: numbers are below n */
	uint32_t *number;      /* of an object; 0: not reached */
	uint32_t *object;      /* by number */
	uint32_t *parent;      /* in the tree of the walk, by number */
	uint32_t *semi;        /* the semidominator, by number */
	uint32_t *offset;      /* of edges that come from larger numbers, by number */
	uint32_t *sources;     /* of those */
	unsigned parts;        /* threads */
	struct graph_list way; /* struct way: from the root that is walked to the last object */
};

struct way {
	uint32_t number;
	uint32_t next; /* edge that is walked next */
};

static void visit(struct dominators *d, graph_id id, uint32_t parent)
{
	d->number[id] = d->n;
	d->object[d->n] = id;
	d->parent[d->n] = parent;
	/* still the bits of roots */
	d->semi[d->n] = graph_bit(d->g->reached, id) ? 0 : parent;
	*(struct way *)graph_list_add(d->g, &d->way, sizeof(struct way), 1) =
		(struct way){ d->n, 0 };
	d->n++;
}

static void walk_from(struct dominators *d, graph_id root)
{
	graph_id to;

	if (d->number[root])
		return;
	visit(d, root, 0);
	while (d->way.n) {
		struct way *way = (struct way *)d->way.v + d->way.n - 1;
		uint32_t from = way->number, number;

		if (!graph_edge_at(d->g, d->object[from], way->next, &to)) {
			d->way.n--;
			continue;
		}
		way->next++;
		number = d->number[to];
		if (!number)
			visit(d, to, from);
		else if (from > number)
			d->offset[number] += d->semi[number] != 0;
		else if (from < d->semi[number])
			d->semi[number] = from;
	}
}

/* Keeps the edges from larger numbers by their targets. */
static void sources_fill(void *arg, unsigned part)
{
	struct dominators *d = arg;
	const struct graph *g = d->g;
	graph_id end = (graph_id)((uint64_t)g->nobjects * (part + 1) / d->parts);

	for (graph_id id = (graph_id)((uint64_t)g->nobjects * part / d->parts); id < end; id++) {
		uint32_t from = d->number[id];
		graph_id target;

		if (!from)
			continue;
		for (uint32_t k = 0; graph_edge_at(g, id, k, &target); k++) {
			uint32_t to = d->number[target];

			if (from > to && d->semi[to])
				d->sources[__atomic_fetch_add(&d->offset[to], 1, __ATOMIC_RELAXED)] =
					from;
		}
	}
}

static void sources_make(struct dominators *d)
{
	uint32_t sum = 0;

	for (uint32_t w = 0; w <= d->n; w++) {
		uint32_t count = w < d->n ? d->offset[w] : 0;

		d->offset[w] = sum;
		sum += count;
	}
	d->sources = graph_alloc_unset(&d->g->memory, ((size_t)sum + 1) * sizeof(*d->sources));
	parallel_run(sources_fill, d, d->parts);
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

/* The offset of a number's edges is needed no more when the least semidominator takes its place. */
static void semidominators(struct dominators *d, uint32_t *ancestor)
{
	uint32_t *semi = d->semi, *least = d->offset, end = d->offset[d->n - 1];

	for (uint32_t w = d->n - 1; w > 0; w--) {
		uint32_t s = semi[w], begin = d->offset[w - 1];

		for (uint32_t i = begin; i < end; i++) {
			uint32_t v = least_above(ancestor, least, d->sources[i], w);

			if (v < s)
				s = v;
		}
		semi[w] = least[w] = s;
		end = begin;
	}
}

/* Makes parent[] the immediate dominators. `jump` and `depth` are room for as many numbers. */
static void nearest_ancestors(struct dominators *d, uint32_t *jump, uint32_t *depth)
{
	uint32_t *dom = d->parent, *semi = d->semi;

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
	size_t room = ((size_t)g->nobjects + 1) * sizeof(*g->dominator);

	g->retained = graph_alloc(&g->memory, ((size_t)g->nobjects + 1) * sizeof(*g->retained));
	for (uint32_t w = d->n - 1; w > 0; w--) {
		graph_id id = d->object[w];
		uint64_t size = graph_size_at(g, id);

		/* All that it dominates has larger numbers. */
		g->retained[id] += size;
		r->bytes += size;
		if (dom[w])
			g->retained[d->object[dom[w]]] += g->retained[id];
	}
	g->dominator = graph_alloc_unset(&g->memory, room);
	memset(g->dominator, 0xff, room);
	for (uint32_t w = 1; w < d->n; w++)
		if (dom[w])
			g->dominator[d->object[w]] = d->object[dom[w]];
	r->objects = d->n - 1;
}

static void walk_all(struct dominators *d)
{
	struct graph *g = d->g;
	size_t words = (size_t)g->nobjects / 64 + 1;

	g->reached = graph_alloc(&g->memory, words * sizeof(*g->reached));
	for (size_t i = 0; i < g->nroots; i++)
		graph_bit_set(g->reached, g->roots[i].id);
	for (size_t i = 0; i < g->nroots; i++)
		walk_from(d, g->roots[i].id);
	graph_release(d->way.v);
	for (uint32_t w = 1; w < d->n; w++)
		graph_bit_set(g->reached, d->object[w]);
}

void graph_dominators(struct graph *g)
{
	struct graph_memory *m = &g->memory;
	size_t room = ((size_t)g->nobjects + 1) * sizeof(uint32_t);
	struct dominators d = { .g = g, .n = 1, .parts = graph_threads(g) };
	uint32_t *ancestor;

	if (g->dominator)
		return;
	d.number = graph_alloc(m, room);
	d.object = graph_alloc_unset(m, room);
	d.parent = graph_alloc_unset(m, room);
	d.semi = graph_alloc_unset(m, room);
	d.offset = graph_alloc(m, room + sizeof(*d.offset));
	d.object[0] = d.parent[0] = d.semi[0] = 0;
	walk_all(&d);
	sources_make(&d);
	graph_release(d.number);
	ancestor = graph_alloc_unset(m, d.n * sizeof(*ancestor));
	memcpy(ancestor, d.parent, d.n * sizeof(*ancestor));
	semidominators(&d, ancestor);
	graph_release(d.sources);
	nearest_ancestors(&d, ancestor, d.offset);
	graph_release(ancestor);
	graph_release(d.offset);
	graph_release(d.semi);
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
