/* What a finished graph has: objects, classes, labels, and the walks over references. */
#define _GNU_SOURCE
#include <stdio.h>

#include "graph_private.h"

const struct graph_totals *graph_totals(const struct graph *g)
{
	return &g->totals;
}

uint32_t graph_remarks(const struct graph *g)
{
	return g->remarks.n;
}

const char *graph_remark_text(const struct graph *g, uint32_t i)
{
	return g->remarks.v[i];
}

graph_id graph_find(const struct graph *g, uint64_t address)
{
	return graph_index_find(&g->index, address);
}

graph_id graph_find_reference(const struct graph *g, uint64_t reference)
{
	const uint64_t *alias = hash_get(&g->aliases, &reference, sizeof(reference));

	return graph_find(g, alias ? *alias : reference);
}

uint64_t graph_address(const struct graph *g, graph_id id)
{
	return graph_index_address(&g->index, id);
}

uint32_t graph_class_of(const struct graph *g, graph_id id)
{
	return graph_class_at(g, id);
}

uint64_t graph_size(const struct graph *g, graph_id id)
{
	return graph_size_at(g, id);
}

uint32_t graph_classes(const struct graph *g)
{
	return g->classes.n;
}

const char *graph_class_text(const struct graph *g, uint32_t class)
{
	return g->class_texts.v[class] ?: intern_text(&g->names, g->classes.v[class].name);
}

graph_id graph_class_id(const struct graph *g, uint32_t class)
{
	return g->classes.v[class].id;
}

uint32_t graph_is_class(const struct graph *g, graph_id id)
{
	uint32_t i = partition_point(g->by_object.n, k, g->by_object.v[k].id < id);

	return i < g->by_object.n && g->by_object.v[i].id == id ? g->by_object.v[i].class : GRAPH_NONE;
}

const char *graph_label_text(const struct graph *g, uint32_t label, char *buf, size_t size)
{
	if (!(label & GRAPH_LABEL_INDEX))
		return intern_text(&g->label_names, label);
	snprintf(buf, size, "[%u]", label & ~GRAPH_LABEL_INDEX);
	return buf;
}

const struct graph_root_of *graph_roots(const struct graph *g, size_t *ret_n)
{
	*ret_n = g->nroots;
	return g->roots;
}

const char *graph_root_kind(const struct graph *g, graph_id id)
{
	size_t i = partition_point(g->nroots, k, g->roots[k].id < id);

	return i < g->nroots && g->roots[i].id == id ? g->roots[i].kind : NULL;
}

struct graph_walk graph_out(const struct graph *g, graph_id id)
{
	uint32_t weak = partition_point(g->weak.n, k, g->weak.v[k].from < id), end = weak;

	while (end < g->weak.n && g->weak.v[end].from == id)
		end++;
	return (struct graph_walk){
		.g = g,
		.of = id,
		.at = g->offset[id],
		.end = g->offset[id + 1],
		.weak = weak,
		.weak_end = end,
	};
}

static int compare_weak_to(const void *x, const void *y, void *arg)
{
	const struct graph *g = arg;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return COMPARE(g->weak.v[a].to, g->weak.v[b].to) ?: COMPARE(a, b);
}

/* Makes the inverse table: the objects that refer to each. */
static void inverse_make(struct graph *g)
{
	const uint32_t *to = g->to.v;
	uint32_t *at = graph_alloc(&g->memory, ((size_t)g->nobjects + 2) * sizeof(*at));

	for (size_t i = 0; i < g->to.n; i++)
		at[to[i] + 1]++;
	for (uint32_t i = 0; i < g->nobjects; i++)
		at[i + 1] += at[i];
	g->in_from = graph_alloc(&g->memory, (g->to.n + 1) * sizeof(*g->in_from));
	/* at[id] is where the next of id belongs, and in the end where those of id + 1 begin. */
	for (graph_id id = 0; id < g->nobjects; id++)
		for (uint32_t i = g->offset[id]; i < g->offset[id + 1]; i++)
			g->in_from[at[to[i]]++] = id;
	memmove(at + 1, at, (size_t)g->nobjects * sizeof(*at));
	at[0] = 0;
	g->in_offset = at;
	g->weak_by_to = graph_alloc(&g->memory, ((size_t)g->weak.n + 1) * sizeof(*g->weak_by_to));
	for (uint32_t i = 0; i < g->weak.n; i++)
		g->weak_by_to[i] = i;
	qsort_r(g->weak_by_to, g->weak.n, sizeof(*g->weak_by_to), compare_weak_to, g);
}

struct graph_walk graph_in(struct graph *g, graph_id id)
{
	uint32_t weak, end;

	if (!g->in_offset)
		inverse_make(g);
	weak = end = partition_point(g->weak.n, k, g->weak.v[g->weak_by_to[k]].to < id);
	while (end < g->weak.n && g->weak.v[g->weak_by_to[end]].to == id)
		end++;
	return (struct graph_walk){
		.g = g,
		.of = id,
		.at = g->in_offset[id],
		.end = g->in_offset[id + 1],
		.weak = weak,
		.weak_end = end,
		.in = true,
		.from = GRAPH_NONE,
	};
}

uint32_t graph_label_between(const struct graph *g, graph_id from, graph_id to, uint32_t most)
{
	const uint32_t *v = g->to.v, *labels = g->labels.v;
	uint32_t i = g->offset[from], end = g->offset[from + 1];

	if (!labels || i == end)
		return GRAPH_LABEL_NONE;
	for (; i < end && most; i++, most--)
		if (v[i] == to)
			return labels[i];
	return i < end ? labels[i] & GRAPH_LABEL_INDEX : GRAPH_LABEL_NONE;
}

/* The label of the reference that a walk over references to an object is at. Those of one object
 * come one after the other, in the order of its list, which is gone over once. */
static uint32_t label_in(struct graph_walk *w, graph_id from)
{
	const uint32_t *to = w->g->to.v, *labels = w->g->labels.v;
	const uint32_t end = w->g->offset[from + 1];

	if (from != w->from)
		w->next = w->g->offset[from];
	w->from = from;
	while (w->next < end && to[w->next] != w->of)
		w->next++;
	if (w->next == end)
		return GRAPH_LABEL_NONE;
	w->next++;
	return labels ? labels[w->next - 1] : GRAPH_LABEL_NONE;
}

bool graph_walk_next(struct graph_walk *w, struct graph_edge_to *ret)
{
	const struct graph *g = w->g;
	const struct graph_apart *a;
	const uint32_t *to = g->to.v, *labels = g->labels.v;

	if (w->at < w->end) {
		*ret = (struct graph_edge_to){ .id = w->in ? g->in_from[w->at] : to[w->at] };
		if (w->in)
			ret->label = label_in(w, ret->id);
		else if (labels)
			ret->label = labels[w->at];
		w->at++;
		return true;
	}
	if (w->weak >= w->weak_end)
		return false;
	a = &g->weak.v[w->in ? g->weak_by_to[w->weak] : w->weak];
	w->weak++;
	*ret = (struct graph_edge_to){ (graph_id)(w->in ? a->from : a->to), a->label, a->strength };
	return true;
}
