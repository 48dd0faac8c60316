/* Heap snapshots of V8 (Node, Chrome): JSON with arrays of numbers for nodes and edges.
 *
 * Two passes: the first reads the description and the strings, which come last; the second the
 * nodes and edges. A node's class is that of Chrome: the constructor of objects, else the kind.
 */
#include <errno.h>

#include "base/hash.h"
#include "base/number.h"
#include "memory/graph/source.h"
#include "memory/heapfile/jsonpull.h"

enum {
	FIELDS_MAX = 32,
	TYPES_MAX = 64,
	ABSENT = FIELDS_MAX,
	NUMBER_TEXT = 64 /* a longer text is no number */
};

/* What is known of a type of node. */
enum node_type {
	NODE_NAMED, /* each name is a class */
	NODE_SYNTHETIC,
	NODE_BY_TYPE, /* the type is the class */
};
static const struct {
	const char *type, *class;
	enum node_type kind;
} snapshot_types[] = {
	{ "object", NULL, NODE_NAMED },
	{ "native", NULL, NODE_NAMED },
	{ "synthetic", NULL, NODE_SYNTHETIC },
	{ "closure", "Function", NODE_BY_TYPE },
	{ "regexp", "RegExp", NODE_BY_TYPE },
	{ "hidden", "(system)", NODE_BY_TYPE },
	{ "code", "(compiled code)", NODE_BY_TYPE },
};

struct snapshot_node {
	uint64_t id, size;
	uint32_t name, edges;
	uint8_t type;
};

struct snapshot {
	struct jsonpull json;
	struct graph *graph;
	bool first; /* pass */
	bool described;
	uint32_t node_fields, edge_fields;
	uint32_t type, name, id, size, edges;   /* fields of nodes */
	uint32_t edge_type, edge_name, edge_to; /* fields of edges */
	struct intern texts;
	VEC(uint32_t) strings;    /* texts by number */
	uint32_t *labels;         /* of the graph for each of them, + 1; 0: not asked for yet */
	VEC(uint32_t) node_types; /* texts */
	VEC(uint32_t) edge_types;
	VEC(struct snapshot_node) nodes;
};

static bool names_read(struct snapshot *s, uint32_t *v, uint32_t most, uint32_t *ret_n)
{
	bool first = true;

	*ret_n = 0;
	if (!jsonpull_take(&s->json, '['))
		return false;
	while (jsonpull_next(&s->json, ']', &first)) {
		if (!jsonpull_string(&s->json))
			return false;
		if (*ret_n == most)
			return jsonpull_bad(&s->json, "a shorter list");
		v[(*ret_n)++] = intern_strn(&s->texts, s->json.text, s->json.n);
	}
	return !s->json.error;
}

static uint32_t field_find(const struct snapshot *s, const uint32_t *v, uint32_t n,
			   const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(intern_text(&s->texts, v[i]), name))
			return i;
	return ABSENT;
}

/* The types of a field are its first element; the others are texts. */
static bool types_read(struct snapshot *s, bool of_nodes)
{
	uint32_t v[TYPES_MAX], n;
	bool first = true;

	if (!jsonpull_take(&s->json, '[') || !jsonpull_next(&s->json, ']', &first))
		return jsonpull_bad(&s->json, "a list of types");
	if (!names_read(s, v, TYPES_MAX, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (of_nodes)
			vec_push(&s->node_types, v[i]);
		else
			vec_push(&s->edge_types, v[i]);
	}
	while (jsonpull_next(&s->json, ']', &first))
		if (!jsonpull_skip(&s->json))
			return false;
	return !s->json.error;
}

static bool meta_read(struct snapshot *s)
{
	uint32_t v[FIELDS_MAX];
	bool first = true;

	if (!jsonpull_take(&s->json, '{'))
		return false;
	while (jsonpull_member(&s->json, &first)) {
		bool ok;

		if (!strcmp(s->json.text, "node_fields")) {
			ok = names_read(s, v, FIELDS_MAX, &s->node_fields);
			s->type = field_find(s, v, s->node_fields, "type");
			s->name = field_find(s, v, s->node_fields, "name");
			s->id = field_find(s, v, s->node_fields, "id");
			s->size = field_find(s, v, s->node_fields, "self_size");
			s->edges = field_find(s, v, s->node_fields, "edge_count");
		} else if (!strcmp(s->json.text, "edge_fields")) {
			ok = names_read(s, v, FIELDS_MAX, &s->edge_fields);
			s->edge_type = field_find(s, v, s->edge_fields, "type");
			s->edge_name = field_find(s, v, s->edge_fields, "name_or_index");
			s->edge_to = field_find(s, v, s->edge_fields, "to_node");
		} else if (!strcmp(s->json.text, "node_types")) {
			ok = types_read(s, true);
		} else if (!strcmp(s->json.text, "edge_types")) {
			ok = types_read(s, false);
		} else {
			ok = jsonpull_skip(&s->json);
		}
		if (!ok)
			return false;
	}
	s->described = s->node_fields && s->edge_fields && s->type < ABSENT && s->name < ABSENT &&
		       s->id < ABSENT && s->size < ABSENT && s->edges < ABSENT &&
		       s->edge_type < ABSENT && s->edge_name < ABSENT && s->edge_to < ABSENT &&
		       s->node_types.n && s->edge_types.n;
	return !s->json.error;
}

static bool description_read(struct snapshot *s)
{
	bool first = true;

	if (!jsonpull_take(&s->json, '{'))
		return false;
	while (jsonpull_member(&s->json, &first))
		if (!(!strcmp(s->json.text, "meta") && s->first ? meta_read(s)
								: jsonpull_skip(&s->json)))
			return false;
	return !s->json.error;
}

static bool strings_read(struct snapshot *s)
{
	bool first = true;

	if (!jsonpull_take(&s->json, '['))
		return false;
	while (jsonpull_next(&s->json, ']', &first)) {
		if (!jsonpull_string(&s->json))
			return false;
		vec_push(&s->strings, intern_strn(&s->texts, s->json.text, s->json.n));
	}
	return !s->json.error;
}

/* Reads the fields of a node or edge. Returns false behind the last. */
static bool fields_next(struct snapshot *s, uint64_t *v, uint32_t n, bool *first)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!jsonpull_next(&s->json, ']', first))
			return i && jsonpull_bad(&s->json, "the rest of the fields");
		if (!jsonpull_number(&s->json, &v[i]))
			return false;
	}
	return true;
}

static const char *string_of(const struct snapshot *s, uint64_t i)
{
	return i < s->strings.n ? intern_text(&s->texts, s->strings.v[i]) : "";
}

static bool nodes_read(struct snapshot *s)
{
	uint64_t v[FIELDS_MAX];
	bool first = true;

	if (!jsonpull_take(&s->json, '['))
		return false;
	while (fields_next(s, v, s->node_fields, &first)) {
		if (v[s->type] >= s->node_types.n)
			return jsonpull_bad(&s->json, "a node of a known type");
		if (s->nodes.n >= UINT32_MAX / 2)
			return jsonpull_bad(&s->json, "fewer nodes");
		vec_push(&s->nodes, (struct snapshot_node){ .id = v[s->id],
							    .size = v[s->size],
							    .name = (uint32_t)v[s->name],
							    .edges = (uint32_t)v[s->edges],
							    .type = (uint8_t)v[s->type] });
	}
	return !s->json.error;
}

static enum node_type node_kind(const struct snapshot *s, const struct snapshot_node *n,
				const char **ret_class)
{
	const char *type = intern_text(&s->texts, s->node_types.v[n->type]);

	*ret_class = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(snapshot_types); i++)
		if (!strcmp(type, snapshot_types[i].type)) {
			*ret_class = snapshot_types[i].class;
			return snapshot_types[i].kind;
		}
	return NODE_BY_TYPE;
}

/* Adds a node without its edges. */
static enum node_type node_add(struct snapshot *s, const struct snapshot_node *n)
{
	const char *name;
	enum node_type kind = node_kind(s, n, &name);
	uint32_t string = kind == NODE_BY_TYPE ? 0 : n->name + 1, classes = graph_classes(s->graph);
	uint32_t class = graph_class(s->graph, (uint64_t)n->type << 32 | string);
	char text[80];

	if (class == classes) { /* it is new */
		if (kind != NODE_BY_TYPE)
			name = string_of(s, n->name);
		else if (!name)
			snprintf(text, sizeof(text), "(%.60s)",
				 intern_text(&s->texts, s->node_types.v[n->type]));
		name = name ?: text;
		graph_class_name(s->graph, class, name, strlen(name));
	}
	graph_object(s->graph, n->id, class, n->size);
	if (kind == NODE_SYNTHETIC)
		graph_root(s->graph, n->id, "root");
	else if (kind == NODE_BY_TYPE &&
		 (graph_wanted(s->graph)->contents || graph_wanted(s->graph)->values) &&
		 !strcmp(intern_text(&s->texts, s->node_types.v[n->type]), "string"))
		graph_text(s->graph, string_of(s, n->name));
	return kind;
}

/* Learns what an object is from its reference to a text: a number has its value, when the snapshot
 * was made with numbers, and null, undefined, true and false their names. */
static void value_learn(struct snapshot *s, const struct snapshot_node *from, const char *edge,
			uint64_t index, const struct snapshot_node *to)
{
	const char *type = intern_text(&s->texts, s->node_types.v[from->type]),
		   *text = string_of(s, to->name);
	const bool is_short = strnlen(text, NUMBER_TEXT) < NUMBER_TEXT;
	int64_t whole;
	char *end;
	union {
		double real;
		uint64_t bits;
	} v;

	if (!strcmp(type, "number") && !strcmp(edge, "value") && is_short) {
		v.real = strtod(text, &end);
		if (number_parse(text, INT64_MIN, INT64_MAX, &whole))
			graph_number(s->graph, GRAPH_LABEL_NONE, 'J', (uint64_t)whole);
		else if (*text && !*end)
			graph_number(s->graph, GRAPH_LABEL_NONE, 'D', v.bits);
	} else if (!strcmp(type, "hidden") && !*edge && !index &&
		   !strcmp(string_of(s, from->name), "system / Oddball")) {
		if (!strcmp(text, "null") || !strcmp(text, "undefined"))
			graph_number(s->graph, GRAPH_LABEL_NONE, 'N', 0);
		else if (!strcmp(text, "true") || !strcmp(text, "false"))
			graph_number(s->graph, GRAPH_LABEL_NONE, 'Z', *text == 't');
	}
}

/* The label of an edge by the number of its name. Many edges can have one long name. */
static uint32_t label_of(struct snapshot *s, uint64_t string)
{
	const char *name = string_of(s, string);
	uint32_t none = 0, *known = string < s->strings.n ? &s->labels[string] : &none;
	int64_t index;

	if (*known)
		return *known - 1;
	if (number_parse(name, 0, INT32_MAX, &index)) /* so are elements of inner arrays named */
		*known = (GRAPH_LABEL_INDEX | (uint32_t)index) + 1;
	else
		*known = graph_label(s->graph, name, strlen(name)) + 1;
	return *known - 1;
}

static bool edge_add(struct snapshot *s, const uint64_t *v, const struct snapshot_node *from,
		     enum node_type kind)
{
	const char *type, *name;
	const struct snapshot_node *to;
	uint32_t label;
	bool element, weak;

	if (v[s->edge_type] >= s->edge_types.n || v[s->edge_to] % s->node_fields ||
	    v[s->edge_to] / s->node_fields >= s->nodes.n)
		return jsonpull_bad(&s->json, "an edge of a known type to a node");
	to = &s->nodes.v[v[s->edge_to] / s->node_fields];
	type = intern_text(&s->texts, s->edge_types.v[v[s->edge_type]]);
	element = !strcmp(type, "element") || !strcmp(type, "hidden");
	/* A shortcut repeats another way, but for those of the root, which mark the globals. */
	weak = !strcmp(type, "weak") || (!strcmp(type, "shortcut") && kind != NODE_SYNTHETIC);
	name = element ? "" : string_of(s, v[s->edge_name]);
	if (graph_wanted(s->graph)->values)
		value_learn(s, from, name, v[s->edge_name], to);
	if (element)
		label = GRAPH_LABEL_INDEX | ((uint32_t)v[s->edge_name] & ~GRAPH_LABEL_INDEX);
	else
		label = label_of(s, v[s->edge_name]);
	graph_edge(s->graph, to->id, label, weak ? GRAPH_WEAK : GRAPH_STRONG);
	if (kind == NODE_SYNTHETIC && !weak)
		graph_root(s->graph, to->id,
			   *string_of(s, from->name) ? string_of(s, from->name) : "root");
	return true;
}

static bool edges_read(struct snapshot *s)
{
	uint64_t v[FIELDS_MAX];
	bool first = true;

	if (!jsonpull_take(&s->json, '['))
		return false;
	for (uint32_t i = 0; i < s->nodes.n; i++) {
		const struct snapshot_node *n = &s->nodes.v[i];
		enum node_type kind = node_add(s, n);

		for (uint32_t k = 0; k < n->edges; k++) {
			if (!fields_next(s, v, s->edge_fields, &first))
				return jsonpull_bad(&s->json, "an edge that a node counts");
			if (!edge_add(s, v, n, kind))
				return false;
		}
	}
	return jsonpull_take(&s->json, ']');
}

static bool snapshot_pass(struct snapshot *s)
{
	bool first = true, edges = false;

	if (!jsonpull_take(&s->json, '{'))
		return false;
	while (jsonpull_member(&s->json, &first)) {
		bool ok;

		if (!strcmp(s->json.text, "snapshot")) {
			ok = description_read(s);
		} else if (!strcmp(s->json.text, "strings") && s->first && !s->strings.n) {
			ok = strings_read(s);
		} else if (!strcmp(s->json.text, "nodes") && !s->first && !s->nodes.n) {
			ok = nodes_read(s);
		} else if (!strcmp(s->json.text, "edges") && !s->first && !edges) {
			ok = edges_read(s);
			edges = true;
		} else {
			ok = jsonpull_skip(&s->json);
		}
		if (!ok)
			return false;
	}
	if (!s->json.error && s->first && (!s->described || !s->strings.n))
		return jsonpull_bad(&s->json, "a description of nodes and edges, and strings,");
	if (!s->json.error && !s->first && !edges)
		return jsonpull_bad(&s->json, "a list of edges");
	return !s->json.error;
}

static struct err *snapshot_read_file(const char *path, struct graph *g)
{
	struct unpack in;
	struct snapshot s = { .json.in = &in, .graph = g, .first = true };
	struct err *e = unpack_open(&in, path, g);

	if (e)
		return e;
	intern_init(&s.texts);
	if (snapshot_pass(&s)) {
		s.first = false;
		s.labels = xcalloc(s.strings.n, sizeof(*s.labels));
		s.json.error = unpack_rewind(&in);
		if (!s.json.error)
			snapshot_pass(&s);
	}
	unpack_close(&in);
	intern_fini(&s.texts);
	vec_fini(&s.strings);
	free(s.labels);
	vec_fini(&s.node_types);
	vec_fini(&s.edge_types);
	vec_fini(&s.nodes);
	return s.json.error;
}

static bool is_snapshot(const void *head, size_t n)
{
	static const char first[] = "{\"snapshot\":";
	const char *p = head;
	size_t k = 0;

	for (size_t i = 0; i < n && k < sizeof(first) - 1; i++) {
		if (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r')
			continue;
		if (p[i] != first[k++])
			return false;
	}
	return k == sizeof(first) - 1;
}

const struct heap_source heap_source_heapsnapshot = {
	.name = "heapsnapshot",
	.what = "V8 heap snapshot",
	.is_file = is_snapshot,
	.read_file = snapshot_read_file,
};
