/* The numbers of objects: fields of instances, static fields, elements of arrays. */
#include "base/characters.h"
#include "graph_private.h"

enum { TEXT_MAX = 1 << 16 /* characters */ };

static int compare_fields(const void *x, const void *y)
{
	const struct graph_field_of *a = x, *b = y;

	return COMPARE(a->class, b->class) ?: COMPARE(a->order, b->order);
}

static int compare_values(const void *x, const void *y)
{
	const struct graph_values_at *a = x, *b = y;

	return COMPARE(a->object, b->object);
}

unsigned graph_type_size(char type)
{
	switch (type) {
	case 'Z':
	case 'B': return 1;
	case 'C':
	case 'S': return 2;
	case 'I':
	case 'F': return 4;
	case 'J':
	case 'D': return 8;
	}
	return 0;
}

uint32_t graph_field_name(struct graph *g, const char *name, size_t n)
{
	return intern_shown(&g->names, name, n);
}

void graph_class_field(struct graph *g, uint32_t class, bool is_static, char type, uint32_t name,
		       uint64_t value)
{
	struct graph_fields *f = &g->fields[is_static];

	if (!g->wanted.values || g->failed ||
	    (f->v.n == f->v.cap && !graph_room(g, (uint64_t)f->v.cap * sizeof(*f->v.v))))
		return;
	vec_push(&f->v, ((struct graph_field_of){
				class,
				f->v.n,
				name,
				{ .type = type, .value = value },
			}));
}

uint8_t *graph_values(struct graph *g, size_t n)
{
	uint32_t last = g->nobjects - 1;
	size_t at = g->values.n;
	uint8_t *p;

	if (!g->wanted.values || g->failed || !g->nobjects || !n ||
	    (g->values_at.n == g->values_at.cap &&
	     !graph_room(g, (uint64_t)g->values_at.cap * sizeof(*g->values_at.v))))
		return NULL;
	p = graph_list_add(g, &g->values, 1, n);
	if (p && g->values_at.n && vec_last(&g->values_at)->object == last)
		vec_last(&g->values_at)->n += n;
	else if (p)
		vec_push(&g->values_at, ((struct graph_values_at){ last, at, n }));
	return p;
}

void graph_text(struct graph *g, const char *text)
{
	const size_t n = strlen(text);
	uint8_t *to = graph_values(g, n);

	if (!n)
		graph_number_text(g, GRAPH_LABEL_NONE, "");
	graph_content(g, text, n);
	if (to)
		memcpy(to, text, n);
}

void graph_characters(struct graph *g, const void *p, size_t n, unsigned width)
{
	struct out o;
	uint8_t *to;

	if (!g->wanted.values || g->failed)
		return;
	if (!n)
		graph_number_text(g, GRAPH_LABEL_NONE, "");
	out_init(&o, NULL);
	out_characters(&o, p, n < TEXT_MAX ? n : TEXT_MAX, width);
	to = graph_values(g, o.n);
	if (to)
		memcpy(to, o.v, o.n);
	out_fini(&o);
}

void graph_values_order(struct graph *g, const graph_id *ids)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; ids && i < g->values_at.n; i++) {
		struct graph_values_at v = g->values_at.v[i];

		v.object = ids[v.object];
		if (v.object != GRAPH_NONE)
			g->values_at.v[kept++] = v;
	}
	if (ids)
		g->values_at.n = kept;
	if (kept)
		qsort(g->values_at.v, kept, sizeof(*g->values_at.v), compare_values);
	for (int i = 0; i < 2; i++) {
		struct graph_fields *f = &g->fields[i];

		if (f->v.n)
			qsort(f->v.v, f->v.n, sizeof(*f->v.v), compare_fields);
		for (uint32_t k = 0; k < f->v.n; k++)
			f->v.v[k].f.name = intern_text(&g->names, f->v.v[k].name);
	}
}

uint32_t graph_fields(const struct graph *g, uint32_t class, bool is_static)
{
	const struct graph_fields *f = &g->fields[is_static];
	uint32_t i = partition_point(f->v.n, k, f->v.v[k].class < class);

	return partition_point(f->v.n, k, f->v.v[k].class <= class) - i;
}

struct graph_field graph_field_at(const struct graph *g, uint32_t class, bool is_static, uint32_t k)
{
	const struct graph_fields *f = &g->fields[is_static];

	return f->v.v[partition_point(f->v.n, j, f->v.v[j].class < class) + k].f;
}

const uint8_t *graph_values_of(const struct graph *g, graph_id id, size_t *ret_n)
{
	uint32_t i = partition_point(g->values_at.n, k, g->values_at.v[k].object < id);

	*ret_n = 0;
	if (i == g->values_at.n || g->values_at.v[i].object != id)
		return NULL;
	*ret_n = g->values_at.v[i].n;
	return (const uint8_t *)g->values.v + g->values_at.v[i].at;
}

void graph_values_fini(struct graph *g)
{
	for (int i = 0; i < 2; i++)
		vec_fini(&g->fields[i].v);
	vec_fini(&g->values_at);
	graph_release(g->values.v);
	graph_release(g->numbers.v);
}
