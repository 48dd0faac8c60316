/* The kinds of objects: pairs of a class and a size. */
#include "graph_private.h"

static uint32_t kind_place(const struct graph *g, uint32_t class, uint64_t size)
{
	uint32_t i = (uint32_t)hash_pair(size, class) & g->kind_mask;

	for (; g->kind_hash[i]; i = (i + 1) & g->kind_mask) {
		const struct graph_kind *k = graph_kind_at(g, g->kind_hash[i] - 1);

		if (k->class == class && k->size == size)
			break;
	}
	return i;
}

static void kinds_grow(struct graph *g)
{
	g->kind_mask = g->kind_mask ? g->kind_mask * 2 + 1 : 1023;
	graph_release(g->kind_hash);
	g->kind_hash = graph_alloc(&g->memory, ((size_t)g->kind_mask + 1) * sizeof(*g->kind_hash));
	for (uint32_t i = 0; i < g->kinds.n; i++) {
		const struct graph_kind *k = graph_kind_at(g, i);

		g->kind_hash[kind_place(g, k->class, k->size)] = i + 1;
	}
}

uint32_t graph_kind(struct graph *g, uint32_t class, uint64_t size)
{
	uint32_t place;
	struct graph_kind *k;

	if (g->kinds.n >= g->kind_mask / 2 && g->kind_mask < UINT32_MAX)
		kinds_grow(g);
	place = kind_place(g, class, size);
	if (!g->kind_hash[place]) {
		k = graph_list_add(g, &g->kinds, sizeof(*k), 1);
		*k = (struct graph_kind){ size, class, GRAPH_NONE };
		g->kind_hash[place] = (uint32_t)g->kinds.n;
	}
	return g->kind_hash[place] - 1;
}

/* Gives the kinds the sizes and the objects of their classes. */
void graph_kinds_finish(struct graph *g)
{
	struct graph_kind *k = g->kinds.v;

	for (size_t i = 0; i < g->kinds.n; i++) {
		const struct graph_class *c = &g->classes.v[k[i].class];

		if (k[i].size == GRAPH_SIZE_OF_CLASS)
			k[i].size = c->size;
		k[i].class_id = c->id;
	}
	graph_release(g->kind_hash);
	g->kind_hash = NULL;
}

void graph_kinds_fini(struct graph *g)
{
	graph_release(g->kinds.v);
	graph_release(g->kind_hash);
}
