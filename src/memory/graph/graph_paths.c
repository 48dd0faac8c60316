/* The shortest paths from roots to objects, merged from the roots down. */
#define _GNU_SOURCE
#include "graph_private.h"

enum {
	LABELS_SEARCHED = 256, /* an array may have millions */
	WAYS_OBJECTS = 1000,
	WAYS_PASSED = 1 << 16, /* objects on the paths of one set */
	WAYS_STEPS = 1 << 28,
};

struct pathfinder {
	struct graph *g;
	uint32_t *parent; /* by object: the object before it on the path; itself: a root; or GRAPH_NONE */
	uint32_t *order;   /* objects as they were reached */
	uint64_t *classes; /* a bit for each object: it is a class */
	uint32_t *wanted;  /* by object: wanted ones on it and below in the tree of paths */
	uint32_t *node;    /* by object that is on a path: the one that it belongs to */
	uint32_t n;
};

/* Walks breadth first from all roots. */
static void paths_search(struct pathfinder *p)
{
	struct graph *g = p->g;
	size_t room = ((size_t)g->nobjects + 1) * sizeof(uint32_t);

	p->parent = graph_alloc(&g->memory, room);
	memset(p->parent, 0xff, room);
	p->order = graph_alloc(&g->memory, room);
	p->node = graph_alloc_unset(&g->memory, room);
	for (size_t i = 0; i < g->nroots; i++) {
		graph_id id = g->roots[i].id;

		if (p->parent[id] == GRAPH_NONE) {
			p->parent[id] = id;
			p->order[p->n++] = id;
		}
	}
	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = p->order[i], to;

		for (uint32_t k = 0; graph_edge_at(g, id, k, &to); k++) {
			if (p->parent[to] != GRAPH_NONE)
				continue;
			p->parent[to] = id;
			p->order[p->n++] = to;
		}
	}
}

struct node_key {
	uint32_t parent, class, label;
	graph_id id; /* of an object that is a class; else GRAPH_NONE */
	const char *root;
};

/* The node of the object: that of its parent's when they are of one class, else the one below it
 * that has the class and label. */
static uint32_t node_of(struct pathfinder *p, struct graph_paths *ret, struct hash *ids,
			graph_id id)
{
	const struct graph *g = p->g;
	bool is_class = graph_bit(p->classes, id);
	struct node_key key = { .parent = GRAPH_NONE,
				.class = graph_class_at(g, id),
				.id = is_class ? id : GRAPH_NONE };
	uint64_t *at;
	bool fresh;

	if (p->parent[id] == id) {
		key.root = graph_root_kind(g, id);
	} else {
		key.parent = p->node[p->parent[id]];
		if (!is_class && ret->nodes.v[key.parent].class == key.class &&
		    !graph_bit(p->classes, ret->nodes.v[key.parent].id))
			return key.parent;
		key.label = graph_label_between(g, p->parent[id], id, LABELS_SEARCHED);
		if (key.label & GRAPH_LABEL_INDEX)
			key.label = GRAPH_LABEL_INDEX;
	}
	at = hash_put(ids, &key, sizeof(key), &fresh);
	if (fresh) {
		*at = ret->nodes.n;
		vec_push(&ret->nodes, (struct graph_path_node){ .parent = key.parent,
								.class = key.class,
								.label = key.label,
								.root = key.root,
								.id = id });
	}
	return (uint32_t)*at;
}

static void nodes_make(struct pathfinder *p, struct graph_paths *ret,
		       bool (*wanted)(void *, graph_id), void *arg)
{
	struct hash ids = { 0 };

	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = p->order[i];
		struct graph_path_node *n;

		if (!p->wanted[id])
			continue;
		p->node[id] = node_of(p, ret, &ids, id);
		n = &ret->nodes.v[p->node[id]];
		n->n++;
		if (wanted(arg, id)) {
			n->wanted++;
			n->bytes += graph_size(p->g, id);
		}
	}
	for (uint32_t i = ret->nodes.n; i-- > 0;) {
		struct graph_path_node *n = &ret->nodes.v[i];

		if (n->parent == GRAPH_NONE)
			continue;
		ret->nodes.v[n->parent].wanted += n->wanted;
		ret->nodes.v[n->parent].bytes += n->bytes;
	}
	hash_fini(&ids);
}

static void classes_mark(struct pathfinder *p)
{
	const struct graph *g = p->g;

	p->classes =
		graph_alloc(&p->g->memory, ((size_t)g->nobjects / 64 + 1) * sizeof(*p->classes));
	for (uint32_t i = 0; i < g->classes.n; i++)
		if (g->classes.v[i].id != GRAPH_NONE)
			graph_bit_set(p->classes, g->classes.v[i].id);
}

void graph_paths(struct graph *g, bool (*wanted)(void *arg, graph_id id), void *arg,
		 struct graph_paths *ret)
{
	struct pathfinder p = { .g = g };

	memset(ret, 0, sizeof(*ret));
	paths_search(&p);
	classes_mark(&p);
	p.wanted = graph_alloc(&g->memory, ((size_t)g->nobjects + 1) * sizeof(*p.wanted));
	for (graph_id id = 0; id < g->nobjects; id++) {
		if (!wanted(arg, id))
			continue;
		if (p.parent[id] == GRAPH_NONE) {
			ret->without++;
			continue;
		}
		p.wanted[id] = 1;
		ret->wanted++;
	}
	for (uint32_t i = p.n; i-- > 0;)
		if (p.parent[p.order[i]] != p.order[i])
			p.wanted[p.parent[p.order[i]]] += p.wanted[p.order[i]];
	nodes_make(&p, ret, wanted, arg);
	graph_release(p.parent);
	graph_release(p.order);
	graph_release(p.node);
	graph_release(p.wanted);
	graph_release(p.classes);
}

struct graph_ways {
	struct pathfinder p; /* wanted[] is 0, and order[] has the objects of the set at hand */
	uint32_t *rank;      /* by object: its place in the order of the search */
	uint32_t *depth;     /* by object: steps from its root */
	uint64_t *members;   /* a bit for each object of the set at hand */
	uint64_t budget;     /* steps of all sets that are left: lists can be long */
};

struct graph_ways *graph_ways_new(struct graph *g)
{
	struct graph_ways *w = xcalloc(1, sizeof(*w));
	const size_t room = ((size_t)g->nobjects + 1) * sizeof(uint32_t);

	w->p.g = g;
	paths_search(&w->p);
	classes_mark(&w->p);
	w->p.wanted = graph_alloc(&g->memory, room);
	w->rank = graph_alloc(&g->memory, room);
	w->members = graph_alloc(&g->memory, ((size_t)g->nobjects / 64 + 1) * sizeof(*w->members));
	w->depth = graph_alloc(&g->memory, room);
	w->budget = WAYS_STEPS;
	for (uint32_t i = 0; i < w->p.n; i++) {
		const graph_id id = w->p.order[i], above = w->p.parent[id];

		w->rank[id] = i;
		w->depth[id] = above == id ? 1 : w->depth[above] + 1;
	}
	return w;
}

void graph_ways_free(struct graph_ways *w)
{
	graph_release(w->p.parent);
	graph_release(w->p.order);
	graph_release(w->p.node);
	graph_release(w->p.wanted);
	graph_release(w->p.classes);
	graph_release(w->rank);
	graph_release(w->depth);
	graph_release(w->members);
	free(w);
}

static bool is_member(void *arg, graph_id id)
{
	const struct graph_ways *w = arg;

	return graph_bit(w->members, id);
}

static int compare_ranks(const void *x, const void *y, void *arg)
{
	const struct graph_ways *w = arg;

	return COMPARE(w->rank[*(const graph_id *)x], w->rank[*(const graph_id *)y]);
}

/* wanted[] is 1 more than the number while an object is known to be on a path. */
size_t graph_ways_to(struct graph_ways *w, const graph_id *ids, size_t n, struct graph_paths *ret)
{
	struct pathfinder *p = &w->p;
	size_t taken = 0;

	memset(ret, 0, sizeof(*ret));
	p->n = 0;
	for (; taken < n && taken < WAYS_OBJECTS && p->n < WAYS_PASSED; taken++) {
		graph_id id = ids[taken];

		if (p->parent[id] == GRAPH_NONE) {
			ret->without++;
			continue;
		}
		if (w->budget < w->depth[id])
			break;
		graph_bit_set(w->members, id);
		ret->wanted++;
		for (; !p->wanted[id]; id = p->parent[id]) {
			p->wanted[id] = 1;
			p->order[p->n++] = id;
			w->budget--;
		}
	}
	qsort_r(p->order, p->n, sizeof(*p->order), compare_ranks, w);
	for (uint32_t i = p->n; i-- > 0;) {
		const graph_id id = p->order[i], above = p->parent[id];

		p->wanted[id] += graph_bit(w->members, id) - 1u;
		if (above != id)
			p->wanted[above] += p->wanted[id];
	}
	nodes_make(p, ret, is_member, w);
	for (uint32_t i = 0; i < p->n; i++) {
		p->wanted[p->order[i]] = 0;
		w->members[p->order[i] / 64] = 0;
	}
	return taken;
}

void graph_paths_fini(struct graph_paths *p)
{
	vec_fini(&p->nodes);
}
