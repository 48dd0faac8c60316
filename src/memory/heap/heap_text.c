/* The text that an object is: a java.lang.String, by its array, or a string of a dump that has its
 * characters as they are. */
#include "memory/heap/heap.h"

#include "base/characters.h"

enum {
	TREE_DEPTH = 256,
	TREE_NODES = 1 << 12,
	TREE_EDGES = 64,
	TEXT_MAX = 1 << 16, /* characters */
	FIELDS_MAX = 64,    /* numbers of a String that are looked at; it has three */
};

/* Where a String has the number of its encoding, 0: of one byte, 1: of two; -1: it has none. A dump
 * can say that Strings have a million fields. */
static int64_t coder_at(const struct graph *g, uint32_t class)
{
	uint32_t n = graph_fields(g, class, false), at = 0;

	for (uint32_t i = 0; i < n && i < FIELDS_MAX; i++) {
		struct graph_field f = graph_field_at(g, class, false, i);

		if (f.type == 'B' && !strcmp(f.name, "coder"))
			return at;
		at += graph_type_size(f.type);
	}
	return -1;
}

static void take(uint64_t *budget, uint64_t n)
{
	*budget -= n < *budget ? n : *budget;
}

static bool put_string(const struct graph *g, graph_id id, struct out *o, uint64_t *budget)
{
	struct graph_walk walk = graph_out(g, id);
	struct graph_edge_to e;
	size_t n, own;
	const uint8_t *fields = graph_values_of(g, id, &own), *chars;
	int64_t coder = coder_at(g, graph_class_of(g, id));

	/* a dump can have a String with millions of references, which all objects refer to */
	while (*budget && graph_walk_next(&walk, &e)) {
		const char *class = graph_class_text(g, graph_class_of(g, e.id));
		bool wide = !strcmp(class, "char[]");

		take(budget, 1);
		if (!wide && strcmp(class, "byte[]") != 0)
			continue;
		chars = graph_values_of(g, e.id, &n);
		if (!wide && coder >= 0 && (size_t)coder < own)
			wide = fields[coder] == 1;
		n /= wide ? 2 : 1;
		out_characters(o, chars, n < TEXT_MAX ? n : TEXT_MAX, wide ? 2 : 1);
		return true;
	}
	return false;
}

/* Puts the parts of a string of V8 that is a tree of two halves each. */
static bool put_tree(struct graph *g, graph_id id, struct out *o, uint64_t *budget)
{
	const uint32_t first = graph_label(g, "first", 5), second = graph_label(g, "second", 6);
	graph_id later[TREE_DEPTH] = { id };
	uint32_t n = 1;

	for (uint32_t i = 0; n && i < TREE_NODES && o->n < TEXT_MAX && *budget; i++) {
		const graph_id at = later[--n];
		uint64_t few = TREE_EDGES;
		graph_id a, b;
		size_t size;
		const uint8_t *p = graph_values_of(g, at, &size);

		if (p) {
			out_mem(o, p, size < TEXT_MAX ? size : TEXT_MAX);
			continue;
		}
		a = graph_member(g, at, first, &few);
		b = graph_member(g, at, second, &few);
		take(budget, TREE_EDGES - few + 1);
		if (n + 2 > TREE_DEPTH)
			return false;
		if (b != GRAPH_NONE)
			later[n++] = b;
		if (a != GRAPH_NONE)
			later[n++] = a;
	}
	return o->n;
}

bool heap_text(struct graph *g, graph_id id, struct out *ret, uint64_t *budget)
{
	const char *class = graph_class_text(g, graph_class_of(g, id));
	size_t n;
	const uint8_t *p;
	bool is_text = true;

	ret->n = 0;
	if (!*budget)
		return false;
	if (!strcmp(class, "(concatenated string)")) {
		is_text = put_tree(g, id, ret, budget);
	} else if (!strcmp(class, "java.lang.String")) {
		is_text = put_string(g, id, ret, budget);
	} else {
		p = graph_fields(g, graph_class_of(g, id), false) ? NULL
								  : graph_values_of(g, id, &n);
		/* an array of numbers is no text */
		is_text = p && !strstr(class, "[]");
		if (is_text)
			out_mem(ret, p, n < TEXT_MAX ? n : TEXT_MAX);
	}
	take(budget, 1 + ret->n / sizeof(uint64_t));
	out_char(ret, '\0');
	return is_text;
}
