/* Writes a graph as a heap snapshot of V8, which Chrome's DevTools open.
 *
 * {"snapshot":{"meta":{...},"node_count":N,...},
 *  "nodes":[type, name, id, self_size, edge_count, trace_node_id, detachedness, ...],
 *  "edges":[type, name_or_index, to_node, ...], ..., "strings":["", ...]}
 *
 * Node 0 is the root. Its child "(GC roots)" has a child for each kind of root, and these have the
 * roots. Then come the objects in their order. The strings are "", the kinds, the classes, the
 * labels that were met, and the texts of the strings among the objects. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/hash.h"
#include "memory/heap/heap.h"
#include "render/json.h"

enum {
	NODE_FIELDS = 7,
	TEXT_MAX = 1024, /* bytes of a string's text, as many as V8 writes characters */
	ROOT_NODES = 2,  /* the root, and "(GC roots)" */
	CLASS_EDGE = 1,  /* the string "class" */
	GC_ROOTS = 2,
	FIXED_STRINGS = 3,
};
/* to_node is a number of 32 bits in DevTools. */
#define OBJECTS_MAX (UINT32_MAX / NODE_FIELDS)

/* Types in the order of META. */
enum node_of {
	HIDDEN,
	ARRAY,
	STRING,
	OBJECT,
	CODE,
	NUMBER = 7,
	SYNTHETIC = 9,
	TREE,
	SLICE,
	SHAPE = 14
};
enum edge_of { EDGE_ELEMENT = 1, EDGE_PROPERTY, EDGE_INTERNAL, EDGE_HIDDEN, EDGE_WEAK = 6 };

static const char META[] =
	"{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\","
	"\"trace_node_id\",\"detachedness\"],"
	"\"node_types\":[[\"hidden\",\"array\",\"string\",\"object\",\"code\",\"closure\","
	"\"regexp\",\"number\",\"native\",\"synthetic\",\"concatenated string\","
	"\"sliced string\",\"symbol\",\"bigint\",\"object shape\"],\"string\",\"number\","
	"\"number\",\"number\",\"number\",\"number\"],"
	"\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"],"
	"\"edge_types\":[[\"context\",\"element\",\"property\",\"internal\",\"hidden\","
	"\"shortcut\",\"weak\"],\"string_or_number\",\"node\"],"
	"\"trace_function_info_fields\":[\"function_id\",\"name\",\"script_name\","
	"\"script_id\",\"line\",\"column\"],"
	"\"trace_node_fields\":[\"id\",\"function_info_index\",\"count\",\"size\",\"children\"],"
	"\"sample_fields\":[\"timestamp_us\",\"last_assigned_id\"],"
	"\"location_fields\":[\"object_index\",\"script_id\",\"line\",\"column\"]}";

/* The classes that stand for a type in our reader and in DevTools. */
static const struct {
	const char *class;
	uint8_t type;
} typed_classes[] = {
	{ "(system)", HIDDEN },       { "(array)", ARRAY },   { "(string)", STRING },
	{ "(compiled code)", CODE },  { "(number)", NUMBER }, { "(concatenated string)", TREE },
	{ "(sliced string)", SLICE }, { "(symbol)", 12 },     { "(bigint)", 13 },
	{ "(object shape)", SHAPE },
};

/* What V8 itself refers to by these names is no property of the program's. */
static const char *const internal_labels[] = {
	"map",    "properties", "elements", "shared", "context",
	"parent", "first",      "second",   "actual", "backing_store",
};

struct snapshot_root {
	uint32_t kind; /* index in kinds */
	graph_id id;
};

struct snapshot_writer {
	struct graph *g;
	struct out *o;
	struct intern kinds; /* 0 is "" and has no node */
	VEC(struct snapshot_root) roots;
	uint8_t *types;      /* of the classes */
	bool of_v8;          /* it is JavaScript's heap */
	struct hash strings; /* label: string << 1 | is internal */
	VEC(uint32_t) labels;
	uint32_t nstrings; /* that have a number, without texts */
	bool more;         /* something stands before in the list */
	struct out text;
	uint64_t budget; /* of heap_text() */
};

static void put_fields(struct snapshot_writer *w, const uint64_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char digits[24], *p = digits + sizeof(digits);
		uint64_t k = v[i];

		do
			*--p = (char)('0' + k % 10);
		while (k /= 10);
		if (w->more)
			*--p = ',';
		w->more = true;
		out_mem(w->o, p, (size_t)(digits + sizeof(digits) - p));
	}
	if (n == NODE_FIELDS)
		out_char(w->o, '\n');
}

static int compare_snapshot_roots(const void *x, const void *y)
{
	const struct snapshot_root *a = x, *b = y;

	return COMPARE(a->kind, b->kind) ?: COMPARE(a->id, b->id);
}

static void roots_collect(struct snapshot_writer *w)
{
	size_t n;
	const struct graph_root_of *roots = graph_roots(w->g, &n);

	for (size_t i = 0; i < n; i++)
		vec_push(&w->roots,
			 (struct snapshot_root){
				 intern_str(&w->kinds, *roots[i].kind ? roots[i].kind : "root"),
				 roots[i].id });
	if (w->roots.n)
		qsort(w->roots.v, w->roots.n, sizeof(*w->roots.v), compare_snapshot_roots);
}

static void types_choose(struct snapshot_writer *w)
{
	const uint32_t n = graph_classes(w->g);

	w->types = xmalloc(n + 1);
	for (uint32_t i = 0; i < n; i++) {
		w->types[i] = OBJECT;
		for (size_t k = 0; k < ARRAY_SIZE(typed_classes); k++)
			if (!strcmp(graph_class_text(w->g, i), typed_classes[k].class))
				w->types[i] = typed_classes[k].type;
		w->of_v8 |= w->types[i] == SHAPE;
	}
}

static uint64_t node_at(const struct snapshot_writer *w, graph_id id)
{
	return (ROOT_NODES + (w->kinds.n - 1) + (uint64_t)id) * NODE_FIELDS;
}

static graph_id class_of(const struct snapshot_writer *w, graph_id id)
{
	return graph_class_id(w->g, graph_class_of(w->g, id));
}

static uint32_t edges_of(const struct snapshot_writer *w, graph_id id)
{
	const struct graph_walk walk = graph_out(w->g, id);

	return (uint32_t)(walk.end - walk.at + walk.weak_end - walk.weak) +
	       (class_of(w, id) != GRAPH_NONE);
}

static uint64_t edges_count(const struct snapshot_writer *w)
{
	uint64_t n = w->roots.n + w->kinds.n; /* one is to "(GC roots)" */

	for (graph_id id = 0; id < graph_totals(w->g)->objects; id++)
		n += edges_of(w, id);
	return n;
}

static bool is_text_type(uint8_t type)
{
	return type == STRING || type == TREE || type == SLICE;
}

static void put_nodes(struct snapshot_writer *w)
{
	const uint32_t kinds = w->kinds.n - 1, classes = FIXED_STRINGS + kinds;
	uint64_t id = 1, texts = w->nstrings;
	size_t root = 0;

	w->more = false;
	put_fields(w, (uint64_t[]){ SYNTHETIC, 0, id, 0, 1, 0, 0 }, NODE_FIELDS);
	put_fields(w, (uint64_t[]){ SYNTHETIC, GC_ROOTS, id += 2, 0, kinds, 0, 0 }, NODE_FIELDS);
	for (uint32_t k = 1; k <= kinds; k++) {
		const size_t first = root;

		while (root < w->roots.n && w->roots.v[root].kind == k)
			root++;
		put_fields(w,
			   (uint64_t[]){ SYNTHETIC, FIXED_STRINGS + k - 1, id += 2, 0, root - first,
					 0, 0 },
			   NODE_FIELDS);
	}
	for (graph_id i = 0; i < graph_totals(w->g)->objects; i++) {
		const uint32_t class = graph_class_of(w->g, i);
		const uint8_t type = w->types[class];

		put_fields(w,
			   (uint64_t[]){ type, is_text_type(type) ? texts++ : classes + class,
					 id += 2, graph_size(w->g, i), edges_of(w, i), 0, 0 },
			   NODE_FIELDS);
	}
}

static bool is_internal(const struct snapshot_writer *w, uint32_t label)
{
	const char *text = graph_label_text(w->g, label, NULL, 0);

	for (size_t i = 0; w->of_v8 && i < ARRAY_SIZE(internal_labels); i++)
		if (!strcmp(text, internal_labels[i]))
			return true;
	return false;
}

/* Gives the labels their strings. The texts come behind them, so that this is before the nodes. */
static void labels_collect(struct snapshot_writer *w)
{
	w->nstrings = FIXED_STRINGS + w->kinds.n - 1 + graph_classes(w->g);
	for (graph_id i = 0; i < graph_totals(w->g)->objects; i++) {
		struct graph_walk walk = graph_out(w->g, i);
		struct graph_edge_to e;

		while (graph_walk_next(&walk, &e)) {
			uint64_t *string;
			bool fresh;

			if (e.label & GRAPH_LABEL_INDEX || e.label == GRAPH_LABEL_NONE)
				continue;
			string = hash_put(&w->strings, &e.label, sizeof(e.label), &fresh);
			if (!fresh)
				continue;
			*string = w->nstrings++ * 2ull + is_internal(w, e.label);
			vec_push(&w->labels, e.label);
		}
	}
}

/* A reference without a name has a number of its own, as V8's hidden ones have. */
static void put_edge(struct snapshot_writer *w, const struct graph_edge_to *e, uint64_t *hidden)
{
	uint64_t type, name;

	if (e->label & GRAPH_LABEL_INDEX) {
		type = EDGE_ELEMENT;
		name = e->label & ~GRAPH_LABEL_INDEX;
	} else if (e->label == GRAPH_LABEL_NONE) {
		type = EDGE_HIDDEN;
		name = (*hidden)++;
	} else {
		name = *hash_get(&w->strings, &e->label, sizeof(e->label));
		type = name & 1 ? EDGE_INTERNAL : EDGE_PROPERTY;
		name >>= 1;
	}
	if (e->strength) {
		type = EDGE_WEAK;
		name = e->label == GRAPH_LABEL_NONE || e->label & GRAPH_LABEL_INDEX ? 0 : name;
	}
	put_fields(w, (uint64_t[]){ type, name, node_at(w, e->id) }, 3);
}

static void put_edges(struct snapshot_writer *w)
{
	size_t root = 0;

	w->more = false;
	put_fields(w, (uint64_t[]){ EDGE_ELEMENT, 1, NODE_FIELDS }, 3);
	for (uint32_t k = 1; k < w->kinds.n; k++)
		put_fields(w, (uint64_t[]){ EDGE_ELEMENT, k, (ROOT_NODES + k - 1) * NODE_FIELDS },
			   3);
	for (uint32_t k = 1; k < w->kinds.n; k++)
		for (uint64_t i = 1; root < w->roots.n && w->roots.v[root].kind == k; root++, i++)
			put_fields(w,
				   (uint64_t[]){ EDGE_ELEMENT, i, node_at(w, w->roots.v[root].id) },
				   3);
	for (graph_id i = 0; i < graph_totals(w->g)->objects; i++) {
		struct graph_walk walk = graph_out(w->g, i);
		struct graph_edge_to e;
		uint64_t hidden = 0;

		while (graph_walk_next(&walk, &e))
			put_edge(w, &e, &hidden);
		if (class_of(w, i) != GRAPH_NONE)
			put_fields(w,
				   (uint64_t[]){ EDGE_INTERNAL, CLASS_EDGE,
						 node_at(w, class_of(w, i)) },
				   3);
		out_char(w->o, '\n');
	}
}

static void put_snapshot_text(struct snapshot_writer *w, const char *text, size_t n)
{
	out_str(w->o, ",\n");
	json_string(w->o, text, n);
}

static void put_strings(struct snapshot_writer *w)
{
	char buf[16];

	out_str(w->o, "\"\"");
	put_snapshot_text(w, "class", 5);
	put_snapshot_text(w, "(GC roots)", 10);
	for (uint32_t k = 1; k < w->kinds.n; k++)
		put_snapshot_text(w, intern_text(&w->kinds, k), strlen(intern_text(&w->kinds, k)));
	for (uint32_t i = 0; i < graph_classes(w->g); i++)
		put_snapshot_text(w, graph_class_text(w->g, i), strlen(graph_class_text(w->g, i)));
	for (uint32_t i = 0; i < w->labels.n; i++) {
		const char *text = graph_label_text(w->g, w->labels.v[i], buf, sizeof(buf));

		put_snapshot_text(w, text, strlen(text));
	}
	for (graph_id i = 0; i < graph_totals(w->g)->objects; i++) {
		size_t n;

		if (!is_text_type(w->types[graph_class_of(w->g, i)]))
			continue;
		n = heap_text(w->g, i, &w->text, &w->budget) ? w->text.n - 1 : 0;
		if (n > TEXT_MAX) /* not within a character of UTF-8 */
			for (n = TEXT_MAX; n && ((uint8_t)w->text.v[n] & 0xc0) == 0x80;)
				n--;
		put_snapshot_text(w, n ? w->text.v : "", n);
	}
}

struct err *heap_write_snapshot(struct graph *g, struct out *o)
{
	struct snapshot_writer w = { .g = g, .o = o, .budget = 1ull << 34 };

	if (graph_totals(g)->objects + ROOT_NODES >= OBJECTS_MAX)
		return err_new(EFBIG, "a snapshot of V8 has at most %u objects", OBJECTS_MAX);
	intern_init(&w.kinds);
	out_init(&w.text, NULL);
	roots_collect(&w);
	types_choose(&w);
	labels_collect(&w);
	out_printf(o, "{\"snapshot\":{\"meta\":%s,\"node_count\":%llu,\"edge_count\":%llu,", META,
		   (unsigned long long)(graph_totals(g)->objects + ROOT_NODES + w.kinds.n - 1),
		   (unsigned long long)edges_count(&w));
	out_str(o, "\"trace_function_count\":0},\n\"nodes\":[");
	put_nodes(&w);
	out_str(o, "],\n\"edges\":[");
	put_edges(&w);
	out_str(o, "],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n"
		   "\"locations\":[],\n\"strings\":[");
	put_strings(&w);
	out_str(o, "]}\n");
	free(w.types);
	vec_fini(&w.roots);
	vec_fini(&w.labels);
	hash_fini(&w.strings);
	intern_fini(&w.kinds);
	out_fini(&w.text);
	return NULL;
}
