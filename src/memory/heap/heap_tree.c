/* The dominator tree as a stack tree: who retains how much, by class. */
#define _GNU_SOURCE
#include "base/hash.h"
#include "memory/heap/heap.h"

enum {
	LEVELS_MAX = 200,
	PATHS_MAX = 2000, /* nodes with paths, from the top down */
	PATHS_ROWS = 30,
	PARTS = 5000, /* what retains less than this part of the heap is added to what holds it */
};

/* Adds objects of one class under a holder as one frame, from the top down. */
struct tree_group {
	uint32_t parent;                 /* index of the group above, GRAPH_NONE: none */
	uint32_t frame, depth, first, n; /* objects: in `members` */
	uint64_t retained;
};

struct tree_maker {
	struct graph *g;
	struct stacktree *tree;
	VEC(struct tree_group) groups;
	VEC(graph_id) members;
	uint64_t least;
};

static int compare_members(const void *x, const void *y, void *arg)
{
	const struct graph *g = arg;
	graph_id a = *(const graph_id *)x, b = *(const graph_id *)y;

	return COMPARE(graph_class_of(g, a), graph_class_of(g, b)) ?: COMPARE(a, b);
}

static uint32_t tree_frame(struct tree_maker *m, graph_id id, uint32_t n)
{
	uint32_t class = n == 1 ? graph_is_class(m->g, id) : GRAPH_NONE, frame;
	const char *name =
		graph_class_text(m->g, class == GRAPH_NONE ? graph_class_of(m->g, id) : class);
	char *text = class == GRAPH_NONE ? xstrdup(name) : xasprintf("class %s", name);

	for (char *p = text; *p; p++)
		if (*p == ';')
			*p = ',';
	frame = stacktree_frame(m->tree, FRAME_NATIVE, text, strlen(text));
	free(text);
	return frame;
}

/* Divides what a group dominates into groups; returns the bytes that are in none of them. */
static uint64_t groups_below(struct tree_maker *m, uint32_t parent)
{
	struct tree_group above = parent == GRAPH_NONE ? (struct tree_group){ .n = 1 }
						       : m->groups.v[parent];
	VEC(graph_id) children = { 0 };
	uint64_t taken = 0;

	for (uint32_t i = 0; i < above.n; i++) {
		graph_id id = parent == GRAPH_NONE ? GRAPH_NONE : m->members.v[above.first + i];
		size_t n;
		const graph_id *v = graph_dominated(m->g, id, &n);

		for (size_t k = 0; k < n; k++)
			vec_push(&children, v[k]);
	}
	if (children.n)
		qsort_r(children.v, children.n, sizeof(*children.v), compare_members, m->g);
	for (uint32_t i = 0, end; i < children.n && above.depth < LEVELS_MAX; i = end) {
		uint64_t retained = 0;

		for (end = i; end < children.n && graph_class_of(m->g, children.v[end]) ==
							  graph_class_of(m->g, children.v[i]);
		     end++)
			retained += graph_retained(m->g, children.v[end]);
		if (retained < m->least)
			continue;
		taken += retained;
		vec_push(&m->groups,
			 (struct tree_group){ .parent = parent,
					      .frame = tree_frame(m, children.v[i], end - i),
					      .depth = above.depth + 1,
					      .first = m->members.n,
					      .n = end - i,
					      .retained = retained });
		for (uint32_t k = i; k < end; k++)
			vec_push(&m->members, children.v[k]);
	}
	vec_fini(&children);
	return (parent == GRAPH_NONE ? graph_reach(m->g)->bytes : above.retained) - taken;
}

/* Returns a text for the paths to a group's objects. */
static char *paths_text(struct tree_maker *m, struct graph_ways *ways,
			const struct tree_group *group)
{
	const struct heap_shown how = { .most = PATHS_ROWS };
	struct graph_paths p;
	size_t n = graph_ways_to(ways, m->members.v + group->first, group->n, &p);
	struct out o;
	char *text;

	out_init(&o, NULL);
	if (n < group->n)
		out_printf(&o, "the first %zu of ", n);
	out_printf(&o, "%u object%s, %llu bytes retained\n%10s %12s  PATH FROM A ROOT\n", group->n,
		   group->n == 1 ? "" : "s", (unsigned long long)group->retained, "LEADS TO",
		   "BYTES");
	heap_put_paths(m->g, &p, &how, &o);
	text = xstrndup(o.v, o.n);
	out_fini(&o);
	graph_paths_fini(&p);
	return text;
}

/* Groups come behind the one above them. Those of one name and holder are one node of the tree. */
static char **paths_make(struct tree_maker *m)
{
	const struct stacktree *t = m->tree;
	char **texts = xcalloc(t->nodes.n + 1ull, sizeof(*texts));
	uint32_t *node = xmalloc((m->groups.n + 1ull) * sizeof(*node));
	struct graph_ways *ways = graph_ways_new(m->g);
	struct hash ids = { 0 };

	for (uint32_t i = 1; i < t->nodes.n; i++) {
		const uint32_t key[] = { t->nodes.v[i].parent, t->nodes.v[i].frame };

		*hash_put(&ids, key, sizeof(key), NULL) = i;
	}
	for (uint32_t i = 0; i < m->groups.n && i < PATHS_MAX; i++) {
		const struct tree_group *group = &m->groups.v[i];
		const uint32_t above = group->parent == GRAPH_NONE ? STACKTREE_ROOT
								   : node[group->parent];
		const uint32_t key[] = { above, group->frame };
		const uint64_t *at = hash_get(&ids, key, sizeof(key));

		node[i] = at ? (uint32_t)*at : STACKTREE_ROOT;
		if (node[i] != STACKTREE_ROOT && !texts[node[i]])
			texts[node[i]] = paths_text(m, ways, group);
	}
	hash_fini(&ids);
	graph_ways_free(ways);
	free(node);
	return texts;
}

void heap_tree_paths_free(char **paths, const struct stacktree *t)
{
	for (uint32_t i = 0; paths && i < t->nodes.n; i++)
		free(paths[i]);
	free(paths);
}

void heap_stacktree(struct graph *g, struct stacktree *ret, char ***ret_paths)
{
	struct tree_maker m = { .g = g, .tree = ret };

	m.least = graph_reach(g)->bytes / PARTS + 1;
	groups_below(&m, GRAPH_NONE);
	for (uint32_t i = 0; i < m.groups.n; i++) {
		uint64_t self = groups_below(&m, i);
		uint32_t ids[LEVELS_MAX + 1], n = 0;

		for (uint32_t k = i; k != GRAPH_NONE; k = m.groups.v[k].parent)
			ids[n++] = m.groups.v[k].frame;
		stacktree_add(ret, ids, n, self);
	}
	stacktree_finish(ret);
	if (ret_paths)
		*ret_paths = paths_make(&m);
	vec_fini(&m.groups);
	vec_fini(&m.members);
}
