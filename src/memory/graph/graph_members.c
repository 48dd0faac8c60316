/* What an object has under a name: a reference, or a number that the language keeps in the object's
 * own words instead of an object. */
#include "graph_private.h"

static int compare_numbers(const void *x, const void *y)
{
	const struct graph_number_of *a = x, *b = y;

	return COMPARE(a->object, b->object) ?: COMPARE(a->label, b->label);
}

void graph_number(struct graph *g, uint32_t label, char type, uint64_t value)
{
	struct graph_number_of *n;

	if (!g->wanted.values || g->failed || !g->nobjects)
		return;
	n = graph_list_add(g, &g->numbers, sizeof(*n), 1);
	if (n)
		*n = (struct graph_number_of){ g->nobjects - 1, label, value, type };
}

void graph_number_text(struct graph *g, uint32_t label, const char *text)
{
	if (g->wanted.values)
		graph_number(g, label, 'T', graph_label(g, text, strlen(text)));
}

void graph_numbers_order(struct graph *g, const graph_id *ids)
{
	struct graph_number_of *v = g->numbers.v;
	size_t kept = 0;
	bool sorted = true;

	for (size_t i = 0; i < g->numbers.n; i++) {
		struct graph_number_of n = v[i];

		if (ids)
			n.object = ids[n.object];
		if (n.object == GRAPH_NONE)
			continue;
		sorted &= !kept || compare_numbers(&v[kept - 1], &n) <= 0;
		v[kept++] = n;
	}
	g->numbers.n = kept;
	if (!sorted)
		qsort(v, kept, sizeof(*v), compare_numbers);
}

bool graph_number_find(const struct graph *g, graph_id id, uint32_t label, struct graph_field *ret)
{
	const struct graph_number_of want = { .object = id, .label = label }, *v = g->numbers.v;
	size_t i = partition_point(g->numbers.n, k, compare_numbers(&v[k], &want) < 0);

	if (i == g->numbers.n || compare_numbers(&v[i], &want))
		return false;
	*ret = (struct graph_field){ .type = v[i].type, .value = v[i].value };
	return true;
}

/* The elements of an object follow its named references, in the order of their indexes. Only those
 * of graph_edge_from() stand behind them. */
static graph_id element_find(const struct graph *g, graph_id id, uint32_t label)
{
	const uint32_t *labels = (const uint32_t *)g->labels.v + g->offset[id];
	uint32_t n = g->offset[id + 1] - g->offset[id],
		 i = partition_point(n, k, labels[k] < label);

	return i < n && labels[i] == label ? ((const uint32_t *)g->to.v)[g->offset[id] + i]
					   : GRAPH_NONE;
}

graph_id graph_member(const struct graph *g, graph_id id, uint32_t label, uint64_t *budget)
{
	struct graph_walk w;
	struct graph_edge_to e;

	if (!g->labels.v)
		return GRAPH_NONE;
	if (label & GRAPH_LABEL_INDEX)
		return element_find(g, id, label);
	w = graph_out(g, id);
	while (*budget && graph_walk_next(&w, &e)) {
		--*budget;
		if (e.label == label)
			return e.id;
	}
	return GRAPH_NONE;
}
