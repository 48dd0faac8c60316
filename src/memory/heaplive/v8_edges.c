/* What V8's objects refer to. */
#include "memory/heaplive/v8_heap.h"

enum {
	POINTER_BITS = 7,
	STRONG = V8_TAG,
	WEAK = V8_TAG | V8_WEAK_TAG,
	PROPERTIES = 8,
	MEMBERS = 24, /* of an object, from here on */
	ARRAY_DATA = 16,
	LENGTH_HIGH = 12, /* upper half of a length that is a small integer */
	DESCRIPTOR = 24,
	OWN_SHIFT = 10,
	OWN_MASK = 0x3ff,
	IN_DESCRIPTOR = 1 << 5,
	INDEX_SHIFT = 19,
	DICTIONARY_HEAD = 3,
	ENTRY = 3,
	CONTEXT_VARIABLES = 32, /* of a context: behind its ScopeInfo and the context around it */
	SYMBOL = 128,
	/* members of a string and a WeakCell */
	STRING_FIRST = 16,
	STRING_SECOND = 24,
	CELL_TARGET = 16,
	CELL_TOKEN = 24,
	CELL_NAME = 8,      /* of a PropertyCell */
	LABEL_MAX = 256,    /* characters of a name */
	OF_SYMBOL = 1 << 2, /* in a key of the labels: the text is a symbol's; no pointer has it */
};

static uint32_t label(struct v8_reader *x, const char *name)
{
	return graph_label(x->graph, name, strlen(name));
}

static void edge_strong(struct v8_reader *x, uint64_t word, uint32_t name,
			enum graph_strength strength)
{
	const uint64_t addr = word & ~(uint64_t)POINTER_BITS;

	if (v8_page_of(x, addr))
		graph_edge(x->graph, addr, name, strength);
}

/* Adds the reference of a word, if it is a pointer. */
static void edge(struct v8_reader *x, uint64_t word, uint32_t name)
{
	if ((word & POINTER_BITS) == STRONG)
		edge_strong(x, word, name, GRAPH_STRONG);
	else if ((word & POINTER_BITS) == WEAK)
		edge_strong(x, word, name, GRAPH_WEAK);
}

/* The same of a word that has a name or an index: it may be a small number. */
static void edge_named(struct v8_reader *x, uint64_t word, uint32_t name)
{
	edge(x, word, name);
	if (!(word & UINT32_MAX) && name != GRAPH_LABEL_NONE && graph_wanted(x->graph)->values)
		graph_number(x->graph, name, 'I', word >> 32);
}

static void edge_weak(struct v8_reader *x, uint64_t word, uint32_t name)
{
	if ((word & POINTER_BITS) == STRONG || (word & POINTER_BITS) == WEAK)
		edge_strong(x, word, name, GRAPH_WEAK);
}

static void edges(struct v8_reader *x, const uint8_t *p, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at + 8 <= to; at += 8)
		edge(x, v8_at(p, at), GRAPH_LABEL_NONE);
}

static void edges_items(struct v8_reader *x, const uint8_t *p, uint64_t first, uint64_t size)
{
	edges(x, p, 8, first);
	for (uint64_t at = first; at + 8 <= size; at += 8)
		edge_named(x, v8_at(p, at), GRAPH_LABEL_INDEX | (uint32_t)((at - first) / 8));
}

/* Returns the label of a name: a string, or a symbol with its description. The labels are kept by
 * the string: many symbols can have one description, whose pieces take long to put together. */
static uint32_t label_of(struct v8_reader *x, uint64_t name)
{
	const uint8_t *p = v8_object(x, name, ARRAY_DATA + 8);
	const struct v8_map *m = p ? v8_map_at(x, v8_at(p, 0)) : NULL;
	const bool symbol = m && m->type == SYMBOL;
	uint64_t string, key, *known;
	const char *text;
	char buf[LABEL_MAX];
	uint32_t ret = GRAPH_LABEL_NONE;

	if (!m || m->type > SYMBOL || !graph_wanted(x->graph)->labels)
		return ret;
	string = symbol ? v8_at(p, (uint32_t)x->v8->n.symbol_name) : name;
	key = symbol ? string | OF_SYMBOL : string;
	known = hash_get(&x->labels, &key, sizeof(key));
	if (known)
		return (uint32_t)*known;
	text = v8_text(x->v8, string);
	if (symbol) {
		snprintf(buf, sizeof(buf), "Symbol(%.200s)", text ?: "");
		text = buf;
	}
	if (text)
		ret = graph_label(x->graph, text, strnlen(text, LABEL_MAX));
	*hash_put(&x->labels, &key, sizeof(key), NULL) = ret;
	return ret;
}

/* Finds the named members of the objects of a Map. */
static void lay_out(struct v8_reader *x, uint32_t index)
{
	const struct v8_numbers *n = &x->v8->n;
	struct v8_map *m = &x->maps.v[index];
	const uint8_t *map = v8_object(x, m->address, V8_MAP_SIZE), *d;
	const uint32_t first = map[n->map_first], words = map[n->map_words],
		       inside = words > first ? words - first : 0,
		       bits = v8_at4(map, (uint32_t)n->map_bits3);
	const uint32_t own = bits >> n->map_dictionary & 1 ? 0 : bits >> OWN_SHIFT & OWN_MASK;

	uint32_t ninside = 0;

	m->laid_out = true;
	m->dictionary = bits >> n->map_dictionary & 1;
	m->first = x->members.n;
	m->members_end = first * 8 < MEMBERS ? MEMBERS : first * 8;
	d = v8_object(x, v8_at(map, (uint32_t)n->map_descriptors),
		      DESCRIPTOR + own * (uint64_t)DESCRIPTOR);
	if (!d || x->budget < own)
		return;
	x->budget -= own;
	for (uint32_t i = 0; i < own; i++) {
		const uint8_t *entry = d + DESCRIPTOR + i * (uint64_t)DESCRIPTOR;
		const uint32_t details = v8_at4(entry, 12), at = details >> INDEX_SHIFT & OWN_MASK;
		const bool outside = at >= inside;

		if (details & IN_DESCRIPTOR || (!outside && ninside++ >= inside))
			continue; /* no field, or more fields than there is room for */
		vec_push(&x->members,
			 (struct v8_member_at){ label_of(x, v8_at(entry, 0)),
						outside ? ARRAY_DATA + (at - inside) * 8
							: (first + at) * 8,
						outside });
	}
	x->maps.v[index].nmembers = x->members.n - x->maps.v[index].first;
}

/* Adds the values of a dictionary by their names, and the names if it has them itself. */
static void edges_names(struct v8_reader *x, const uint8_t *p, uint64_t size, bool keys)
{
	const uint64_t first = ARRAY_DATA + (DICTIONARY_HEAD + (uint64_t)x->v8->n.names_prefix) * 8;

	for (uint64_t at = first; at + ENTRY * 8 <= size; at += ENTRY * 8) {
		const uint64_t key = v8_at(p, at), value = v8_at(p, at + 8);

		if (keys)
			edge(x, key, GRAPH_LABEL_NONE);
		if ((value & POINTER_BITS) == STRONG ||
		    (!(value & UINT32_MAX) && graph_wanted(x->graph)->values))
			edge_named(x, value, label_of(x, key));
	}
}

/* The properties of an object whose Map does not list them. */
static void edges_dictionary(struct v8_reader *x, uint64_t properties)
{
	const uint8_t *p = v8_object(x, properties, ARRAY_DATA);
	const struct v8_map *m = p ? v8_map_at(x, v8_at(p, 0)) : NULL;
	const uint64_t n = p ? v8_at4(p, LENGTH_HIGH) : 0, size = ARRAY_DATA + n * 8;

	if (!m || m->holds != V8_NAMES || !v8_object(x, properties, size) || x->budget < n)
		return;
	x->budget -= n;
	edges_names(x, p, size, false);
}

/* The named members of an object: in it, and in the array of its properties. */
static void edges_members(struct v8_reader *x, const struct v8_map *m, const uint8_t *p,
			  uint64_t size)
{
	const uint64_t properties = v8_at(p, PROPERTIES);
	const uint8_t *array = v8_object(x, properties, ARRAY_DATA);
	uint64_t n = ARRAY_DATA;

	if (array)
		n += (v8_at4(array, LENGTH_HIGH) & OWN_MASK) * 8ull;
	array = array ? v8_object(x, properties, n) : NULL;
	for (uint32_t i = 0; i < m->nmembers; i++) {
		const struct v8_member_at *k = &x->members.v[m->first + i];

		if (!k->outside && k->at + 8ull <= size) {
			edge_named(x, v8_at(p, k->at), k->label);
		} else if (k->outside && array && k->at + 8ull <= n && x->budget) {
			x->budget--;
			edge_named(x, v8_at(array, k->at), k->label);
		}
	}
}

static void edges_object(struct v8_reader *x, const uint8_t *p, uint64_t size, uint32_t index)
{
	const struct v8_numbers *n = &x->v8->n;
	struct v8_map m;
	uint64_t buffer;

	if (size < MEMBERS)
		return;
	if (!x->maps.v[index].laid_out)
		lay_out(x, index);
	m = x->maps.v[index]; /* a name's Map may make the list move */
	edge(x, v8_at(p, PROPERTIES), x->label_properties);
	edge(x, v8_at(p, ARRAY_DATA), x->label_elements);
	for (uint64_t at = MEMBERS; at + 8 <= size && at < m.members_end; at += 8) {
		uint32_t name = GRAPH_LABEL_NONE;

		if (m.closure && at == (uint32_t)n->function_shared)
			name = x->label_shared;
		else if (m.closure && at == (uint32_t)n->function_context)
			name = x->label_context;
		edge(x, v8_at(p, at), name);
	}
	if (m.nmembers)
		edges_members(x, &m, p, size);
	if (m.dictionary)
		edges_dictionary(x, v8_at(p, PROPERTIES));
	buffer = n->type_buffer && m.type == n->type_buffer ? v8_buffer_note(x, p, size) : 0;
	if (buffer)
		graph_edge(x->graph, buffer, label(x, "backing_store"), GRAPH_STRONG);
}

static void edges_context(struct v8_reader *x, const uint8_t *p, uint64_t size)
{
	const uint64_t scope = size >= CONTEXT_VARIABLES ? v8_at(p, ARRAY_DATA) : 0;
	uint32_t n = 0, first = scope ? v8_scope_names(x->v8, scope, &n) : 0;
	const uint8_t *names = first ? v8_object(x, scope, (first + n) * 8ull) : NULL;

	edges(x, p, 8, size < CONTEXT_VARIABLES ? size : CONTEXT_VARIABLES);
	for (uint64_t at = CONTEXT_VARIABLES, i = 0; at + 8 <= size; at += 8, i++)
		edge_named(x, v8_at(p, at),
			   names && i < n ? label_of(x, v8_at(names, (first + i) * 8))
					  : GRAPH_LABEL_NONE);
}

static void edges_cells(struct v8_reader *x, const uint8_t *p, uint64_t size)
{
	for (uint64_t at = 8; at + 8 <= size; at += 8) {
		const uint64_t cell = v8_at(p, at);
		const uint8_t *c = v8_object(x, cell, CELL_NAME + 8);

		edge(x, cell, c ? label_of(x, v8_at(c, CELL_NAME)) : GRAPH_LABEL_NONE);
	}
}

/* The table itself holds neither keys nor values. */
static void edges_ephemeron(struct v8_reader *x, const uint8_t *p, uint64_t size)
{
	const uint32_t name = label(x, "<value in a WeakMap>");

	for (uint64_t at = ARRAY_DATA + DICTIONARY_HEAD * 8; at + 16 <= size; at += 16) {
		const uint64_t key = v8_at(p, at), value = v8_at(p, at + 8);

		edge_weak(x, key, GRAPH_LABEL_NONE);
		edge_weak(x, value, GRAPH_LABEL_NONE);
		if ((key & POINTER_BITS) == STRONG && (value & POINTER_BITS) == STRONG &&
		    v8_page_of(x, key) && v8_page_of(x, value))
			graph_edge_from(x->graph, key - V8_TAG, value - V8_TAG, name, GRAPH_STRONG);
	}
}

static void edges_weakly(struct v8_reader *x, const uint8_t *p, uint64_t size, bool object)
{
	for (uint64_t at = 8; at + 8 <= size; at += 8) {
		if (object ? at == MEMBERS : at == CELL_TARGET || at == CELL_TOKEN)
			edge_weak(x, v8_at(p, at), GRAPH_LABEL_NONE);
		else
			edge(x, v8_at(p, at), GRAPH_LABEL_NONE);
	}
}

static void edges_string(struct v8_reader *x, const struct v8_map *m, const uint8_t *p,
			 uint64_t size)
{
	const int32_t form = m->type & x->v8->n.string_form_mask;

	if (size >= STRING_FIRST + 8)
		edge(x, v8_at(p, STRING_FIRST),
		     form == x->v8->n.string_cons     ? label(x, "first")
		     : form == x->v8->n.string_sliced ? label(x, "parent")
						      : label(x, "actual"));
	if (size >= STRING_SECOND + 8)
		edge(x, v8_at(p, STRING_SECOND), label(x, "second"));
}

void v8_edges(struct v8_reader *x, const uint8_t *p, uint64_t size, uint32_t index)
{
	const struct v8_map *m = &x->maps.v[index];

	if (!x->labelled) {
		x->labelled = true;
		x->label_map = label(x, "map");
		x->label_properties = label(x, "properties");
		x->label_elements = label(x, "elements");
		x->label_shared = label(x, "shared");
		x->label_context = label(x, "context");
	}
	edge(x, m->address, x->label_map);
	switch (m->holds) {
	case V8_WORDS: edges(x, p, 8, size); break;
	case V8_ITEMS: edges_items(x, p, m->size < size ? m->size : size, size); break;
	case V8_HEAD_WORDS: edges(x, p, 8, m->size < size ? m->size : size); break;
	case V8_STRING_PARTS: edges_string(x, m, p, size); break;
	case V8_OBJECT: edges_object(x, p, size, index); break;
	case V8_CONTEXT: edges_context(x, p, size); break;
	case V8_NAMES: edges_names(x, p, size, true); break;
	case V8_CELLS: edges_cells(x, p, size); break;
	case V8_EPHEMERON: edges_ephemeron(x, p, size); break;
	case V8_WEAKLY: edges_weakly(x, p, size, v8_is_receiver(x, m->type)); break;
	default: break;
	}
}
