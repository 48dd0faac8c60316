/* The shortest paths from roots to objects, merged from the roots down. */
#include "graph_private.h"

enum { LABELS_SEARCHED = 256 }; /* an array may have millions */

struct pathfinder {
	struct graph *g;
	uint32_t *parent; /* by object: the object before it on the path; itself: a root; or GRAPH_NONE */
	uint32_t *order;   /* objects as they were reached */
	uint64_t *classes; /* a bit for each object: it is a class */
	uint32_t *wanted;  /* by object: wanted ones on it and below in the tree of paths */
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
			const uint32_t *node, graph_id id)
{
	const struct graph *g = p->g;
	bool is_class = graph_bit(p->classes, id);
	struct node_key key = { .parent = GRAPH_NONE,
				.class = g->class[id],
				.id = is_class ? id : GRAPH_NONE };
	uint64_t *at;
	bool fresh;

	if (p->parent[id] == id) {
		key.root = graph_root_kind(g, id);
	} else {
		key.parent = node[p->parent[id]];
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
	uint32_t *node = graph_alloc(&p->g->memory, ((size_t)p->g->nobjects + 1) * sizeof(*node));

	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = p->order[i];
		struct graph_path_node *n;

		if (!p->wanted[id])
			continue;
		node[id] = node_of(p, ret, &ids, node, id);
		n = &ret->nodes.v[node[id]];
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
	graph_release(node);
}

void graph_paths(struct graph *g, bool (*wanted)(void *arg, graph_id id), void *arg,
		 struct graph_paths *ret)
{
	struct pathfinder p = { .g = g };

	memset(ret, 0, sizeof(*ret));
	paths_search(&p);
	p.classes = graph_alloc(&g->memory, ((size_t)g->nobjects / 64 + 1) * sizeof(*p.classes));
	for (uint32_t i = 0; i < g->classes.n; i++)
		if (g->classes.v[i].id != GRAPH_NONE)
			graph_bit_set(p.classes, g->classes.v[i].id);
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
	graph_release(p.wanted);
	graph_release(p.classes);
}

void graph_paths_fini(struct graph_paths *p)
{
	vec_fini(&p->nodes);
}
