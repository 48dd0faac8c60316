/* The members of an object by name, as the program sees them: fields, variables, properties,
 * elements, wherever the language keeps them. */
#define _GNU_SOURCE
#include <string.h>

#include "memory/heap/heap_query.h"

/* Values of the types whose class is the kind of array. */
static const struct {
	const char *class;
	char type;
} array_types[] = {
	{ "boolean[]", 'Z' }, { "byte[]", 'B' }, { "char[]", 'C' },  { "short[]", 'S' },
	{ "int[]", 'I' },     { "long[]", 'J' }, { "float[]", 'F' }, { "double[]", 'D' },
};

struct heap_value heap_number(struct heap_query *q, char type, uint64_t value)
{
	struct heap_value v = { .kind = HEAP_REAL };
	float half;

	switch (type) {
	case 'Z':
	case 'B': return heap_integer((int8_t)value);
	case 'C': return heap_integer((uint16_t)value);
	case 'S': return heap_integer((int16_t)value);
	case 'I': return heap_integer((int32_t)value);
	case 'J': return heap_integer((int64_t)value);
	case 'F':
		memcpy(&half, &value, sizeof(half));
		v.real = half;
		return v;
	case 'D': memcpy(&v.real, &value, sizeof(v.real)); return v;
	case 'T':
		return (struct heap_value){
			.kind = HEAP_TEXT, .text = graph_label_text(q->g, (uint32_t)value, NULL, 0)
		};
	}
	return (struct heap_value){ .kind = HEAP_NOTHING };
}

static struct heap_value number_at(struct heap_query *q, const uint8_t *p, char type)
{
	uint64_t value = 0;

	memcpy(&value, p, graph_type_size(type));
	return heap_number(q, type, value);
}

static struct heap_member *member_named(struct heap_query *q, const char *name)
{
	const uint32_t n = graph_classes(q->g);
	struct heap_member m = { .name = name };
	cleanup_free char *variable = NULL;

	for (uint32_t i = 0; i < q->members.n; i++)
		if (!strcmp(q->members.v[i].name, name))
			return &q->members.v[i];
	variable = xasprintf("@%s", name);
	m.label = graph_label(q->g, name, strlen(name));
	m.variable = graph_label(q->g, variable, strlen(variable));
	m.by_class = xmalloc((n + 1ull) * sizeof(*m.by_class));
	for (uint32_t i = 0; i < n; i++)
		m.by_class[i] = (struct heap_member_at){ .type = '?' };
	vec_push(&q->members, m);
	return vec_last(&q->members);
}

/* Finds where the instances of a class have a number: 0 is its type when they have none. */
static struct heap_member_at place_in_class(struct heap_query *q, struct heap_member *m,
					    uint32_t class)
{
	struct heap_member_at *p = &m->by_class[class];
	const uint32_t n = p->type == '?' ? graph_fields(q->g, class, false) : 0;
	uint32_t at = 0;

	if (p->type != '?')
		return *p;
	*p = (struct heap_member_at){ 0 };
	for (uint32_t i = 0; i < n && q->budget; i++, q->budget--) {
		struct graph_field f = graph_field_at(q->g, class, false, i);

		if (!strcmp(f.name, m->name)) {
			*p = (struct heap_member_at){ at, f.type };
			break;
		}
		at += graph_type_size(f.type);
	}
	return *p;
}

static bool number_of_instance(struct heap_query *q, struct heap_member *m, graph_id id,
			       struct heap_value *ret)
{
	struct heap_member_at p = place_in_class(q, m, graph_class_of(q->g, id));
	const uint8_t *v;
	size_t n;

	if (!p.type)
		return false;
	v = graph_values_of(q->g, id, &n);
	*ret = p.at + (uint64_t)graph_type_size(p.type) <= n ? number_at(q, v + p.at, p.type)
							     : heap_number(q, p.type, 0);
	return true;
}

static bool number_of_class(struct heap_query *q, struct heap_member *m, graph_id id,
			    struct heap_value *ret)
{
	const uint32_t class = graph_is_class(q->g, id);
	const uint32_t n = class == GRAPH_NONE ? 0 : graph_fields(q->g, class, true);

	for (uint32_t i = 0; i < n && q->budget; i++, q->budget--) {
		struct graph_field f = graph_field_at(q->g, class, true, i);

		if (!strcmp(f.name, m->name)) {
			*ret = heap_number(q, f.type, f.value);
			return true;
		}
	}
	return false;
}

/* What the object itself has under a label. */
static bool labelled(struct heap_query *q, graph_id id, uint32_t label, struct heap_value *ret)
{
	struct graph_field f;
	graph_id to;

	if (graph_number_find(q->g, id, label, &f)) {
		*ret = heap_number(q, f.type, f.value);
		return true;
	}
	to = graph_member(q->g, id, label, &q->budget);
	if (to == GRAPH_NONE)
		return false;
	*ret = (struct heap_value){ .kind = HEAP_OBJECT, .id = to };
	return true;
}

/* Looks in what keeps an object's members apart from it: Python's __dict__, which is not named
 * everywhere, and the array of an Array's elements. */
static bool labelled_apart(struct heap_query *q, graph_id id, uint32_t label,
			   struct heap_value *ret)
{
	struct graph_walk w = graph_out(q->g, id);
	const bool element = label & GRAPH_LABEL_INDEX;
	struct graph_edge_to e;

	while (q->budget && graph_walk_next(&w, &e)) {
		q->budget--;
		if (element ? e.label != q->label_elements || !e.label
			    : e.label != GRAPH_LABEL_NONE && e.label != q->label_dict)
			continue;
		if (!element &&
		    strcmp(graph_class_text(q->g, graph_class_of(q->g, e.id)), "dict") != 0)
			continue;
		if (labelled(q, e.id, label, ret))
			return true;
	}
	return false;
}

struct heap_value heap_member_of(struct heap_query *q, graph_id id, const char *name)
{
	struct heap_member *m = member_named(q, name);
	struct heap_value v = { .kind = HEAP_NOTHING };
	const bool found = number_of_instance(q, m, id, &v) || number_of_class(q, m, id, &v) ||
			   labelled(q, id, m->label, &v) || labelled(q, id, m->variable, &v) ||
			   labelled_apart(q, id, m->label, &v);

	m->seen |= found;
	return v;
}

struct heap_value heap_element_of(struct heap_query *q, graph_id id, uint64_t index)
{
	const char *class = graph_class_text(q->g, graph_class_of(q->g, id));
	struct heap_value v = { .kind = HEAP_NOTHING };
	const uint8_t *p;
	size_t n;

	if (index > INT32_MAX)
		return v;
	for (size_t i = 0; i < ARRAY_SIZE(array_types); i++) {
		const unsigned size = graph_type_size(array_types[i].type);

		if (strcmp(class, array_types[i].class) != 0)
			continue;
		p = graph_values_of(q->g, id, &n);
		return p && index < n / size ? number_at(q, p + index * size, array_types[i].type)
					     : v;
	}
	if (!labelled(q, id, GRAPH_LABEL_INDEX | (uint32_t)index, &v))
		labelled_apart(q, id, GRAPH_LABEL_INDEX | (uint32_t)index, &v);
	return v;
}
