/* Writes a graph of Java's objects as an HPROF file. A class gets a field for each name of a
 * reference that its objects have, and bytes that make up their size. */
#include "memory/heapfile/hprof_write.h"

#include "memory/heapfile/hprof.h"

enum {
	TAG_UTF8 = 0x01,
	TAG_LOAD_CLASS = 0x02,
	TAG_HEAP_DUMP_SEGMENT = 0x1c,
	TAG_HEAP_DUMP_END = 0x2c,
	CLASS_DUMP = 0x20,
	INSTANCE_DUMP,
	OBJECTS_DUMP,
	NUMBERS_DUMP,
	ROOT_UNKNOWN = 0xff,
	ROOT_JNI_GLOBAL = 0x01,
	ROOT_LOCAL = 0x03,
	ROOT_CLASS = 0x05,
	ROOT_THREAD = 0x08,
	SEGMENT = 1 << 20,
	SLOTS_MAX = 1 << 10,   /* references of a class */
	NUMBERS_MAX = 1 << 10, /* fields of a class with numbers */
	PADS_MAX = 1 << 14,    /* of 8 bytes */
	STATICS_MAX = 1 << 15, /* of a class that is an object */
	HEADER = 12,           /* of an instance, as the reader expects it */
	ARRAY_HEADER = 16,
	NAME_SIZE = 256,
};
/* Ids of what is no object. No object's address is so high. */
#define CLASS_ID (1ull << 62)
#define LABEL_NAME (1ull << 40)
#define CLASS_NAME (1ull << 41)
#define PAD_NAME (1ull << 42)
#define NUMBER_NAME (1ull << 43)             /* + (class * 2 + is static) * NUMBERS_MAX + field */
#define ARRAY_BYTES_MAX (UINT32_MAX - 64ull) /* of the elements in the file */

/* A field of a class. */
struct slot {
	uint32_t label, next; /* index + 1 */
	uint32_t same;        /* the next of this label in the class: index + 1 */
	uint64_t object;      /* the one that has the value, + 1 */
	uint64_t value;
	/* Of the first of a label: the last, and the first that is not known to be taken by the
	 * object `asked`, + 1: index + 1. */
	uint32_t last_same, open;
	uint64_t asked;
};

struct write_class {
	uint32_t first, last, n; /* slots: index + 1 */
	uint64_t size;           /* of its instances */
	uint64_t pad;            /* bytes of fields that make up the size */
	uint32_t number_at,
		nnumbers; /* in number_sizes: fields with numbers that there is room for */
	uint32_t number_bytes;
	uint64_t loader;
	uint32_t super;        /* index + 1 */
	uint8_t element;       /* of an array: enum hprof_type */
	enum graph_strength s; /* of references of its objects that are not strong */
	bool is_strength;      /* java.lang.ref.WeakReference and its like */
};

/* What a reference of an object that is neither a class nor an array becomes. */
enum place { PLACE_FIELD, PLACE_REFERENT, PLACE_LOADER, PLACE_LOCAL, PLACE_ROOT };

struct writer {
	struct graph *g;
	struct out *o;
	struct out part; /* of a segment */
	unsigned ref;    /* bytes of a reference in memory */
	struct write_class *classes;
	uint32_t nclasses;
	VEC(struct slot) slots;
	VEC(uint8_t) number_sizes; /* of the fields of all classes */
	struct hash slot_of;       /* class << 32 | label -> the first slot: index + 1 */
	uint32_t base;             /* java.lang.ref.Reference: index + 1 */
	uint32_t referent;         /* label of weak references */
	uint64_t lost;
	struct {
		uint64_t label; /* + 1 */
		enum place place;
	} places[1024]; /* what was found for a label */
};

static void put_number(struct out *o, uint64_t v, unsigned n)
{
	while (n--)
		out_char(o, (char)(v >> 8 * n));
}

static uint64_t class_id(const struct writer *w, uint32_t class)
{
	graph_id id = graph_class_id(w->g, class);

	return id == GRAPH_NONE ? CLASS_ID + class * 8ull : graph_address(w->g, id);
}

/* Returns the class of this name: index + 1. */
static uint32_t class_named(const struct writer *w, const char *name)
{
	for (uint32_t i = 0; i < graph_classes(w->g); i++)
		if (!strcmp(graph_class_text(w->g, i), name))
			return i + 1;
	return 0;
}

static const struct {
	const char *name;
	char letter;
	uint8_t type, size;
} element_types[] = {
	{ "boolean", 'Z', HPROF_BOOLEAN, 1 }, { "char", 'C', HPROF_CHAR, 2 },
	{ "float", 'F', HPROF_FLOAT, 4 },     { "double", 'D', HPROF_DOUBLE, 8 },
	{ "byte", 'B', HPROF_BYTE, 1 },       { "short", 'S', HPROF_SHORT, 2 },
	{ "int", 'I', HPROF_INT, 4 },         { "long", 'J', HPROF_LONG, 8 },
};

static uint8_t type_of_letter(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(element_types); i++)
		if (element_types[i].letter == letter)
			return element_types[i].type;
	return HPROF_BYTE;
}

/* Returns how often "[]" stands at the end of a name. Sets *ret_n to the length in front. */
static uint32_t name_dims(const char *name, size_t *ret_n)
{
	size_t n = strlen(name);
	uint32_t dims = 0;

	for (; n >= 2 && !memcmp(name + n - 2, "[]", 2); n -= 2)
		dims++;
	*ret_n = n;
	return dims;
}

static int element_index(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(element_types); i++)
		if (strlen(element_types[i].name) == n && !memcmp(element_types[i].name, name, n))
			return (int)i;
	return -1;
}

/* Writes "int[][]" as "[[I". */
static void put_class_name(struct out *o, const char *name)
{
	size_t n;
	uint32_t dims = name_dims(name, &n);
	int element = dims ? element_index(name, n) : -1;

	for (uint32_t i = 0; i < dims; i++)
		out_char(o, '[');
	if (element >= 0) {
		out_char(o, element_types[element].letter);
		return;
	}
	if (dims)
		out_char(o, 'L');
	for (size_t i = 0; i < n; i++)
		out_char(o, name[i] == '.' ? '/' : name[i]);
	if (dims)
		out_char(o, ';');
}

static void class_begin(struct writer *w, uint32_t class)
{
	const char *name = graph_class_text(w->g, class);
	size_t n;
	uint32_t dims = name_dims(name, &n);
	int element = dims == 1 ? element_index(name, n) : -1;

	if (dims)
		w->classes[class].element = element >= 0 ? element_types[element].type
							 : HPROF_OBJECT;
}

static bool is_label(const struct writer *w, uint32_t label, const char *text)
{
	char buf[NAME_SIZE];

	return !(label & GRAPH_LABEL_INDEX) &&
	       !strcmp(graph_label_text(w->g, label, buf, sizeof(buf)), text);
}

static struct write_class *class_of(const struct writer *w, graph_id id)
{
	return &w->classes[graph_class_of(w->g, id)];
}

/* A reference takes 4 bytes of its object or more, so that the fields of a class are no more than
 * its smallest object has room for. */
static struct slot *slot_add(struct writer *w, struct write_class *c, uint32_t label)
{
	uint64_t key = (uint64_t)(c - w->classes) << 32 | label, *first;
	bool fresh;

	if (c->n == SLOTS_MAX || (c->size && c->n * 4ull >= c->size))
		return NULL;
	vec_push(&w->slots, (struct slot){ .label = label });
	if (c->last)
		w->slots.v[c->last - 1].next = w->slots.n;
	else
		c->first = w->slots.n;
	c->last = w->slots.n;
	c->n++;
	first = hash_put(&w->slot_of, &key, sizeof(key), &fresh);
	if (fresh)
		*first = w->slots.n;
	else
		w->slots.v[w->slots.v[*first - 1].last_same - 1].same = w->slots.n;
	w->slots.v[*first - 1].last_same = w->slots.n;
	return vec_last(&w->slots);
}

/* Returns a slot of this label that the object has not taken yet, or NULL. Passes over each slot
 * once for an object, because its references can all have one label. */
static struct slot *slot_free(struct writer *w, const struct write_class *c, graph_id id,
			      uint32_t label)
{
	uint64_t key = (uint64_t)(c - w->classes) << 32 | label,
		 *at = hash_get(&w->slot_of, &key, sizeof(key));
	struct slot *first;

	if (!at)
		return NULL;
	first = &w->slots.v[*at - 1];
	if (first->asked != id + 1ull) {
		first->asked = id + 1ull;
		first->open = (uint32_t)*at;
	}
	while (first->open && w->slots.v[first->open - 1].object == id + 1ull)
		first->open = w->slots.v[first->open - 1].same;
	return first->open ? &w->slots.v[first->open - 1] : NULL;
}

static enum place label_place(const struct writer *w, uint32_t label)
{
	if (is_label(w, label, "<classes>"))
		return PLACE_LOADER;
	if (is_label(w, label, "<local>") || is_label(w, label, "JNI local"))
		return PLACE_LOCAL;
	if (is_label(w, label, "<handles>") || is_label(w, label, "VM"))
		return PLACE_ROOT;
	return PLACE_FIELD;
}

static enum place place_of(struct writer *w, const struct graph_edge_to *e)
{
	uint32_t i = e->label % ARRAY_SIZE(w->places);

	if (e->strength != GRAPH_STRONG)
		return PLACE_REFERENT;
	if (w->places[i].label != e->label + 1ull) {
		w->places[i].label = e->label + 1ull;
		w->places[i].place = label_place(w, e->label);
	}
	return w->places[i].place;
}

/* Gives the object's references slots of its class, with their values. */
static void slots_fill(struct writer *w, graph_id id, bool count)
{
	struct write_class *c = class_of(w, id);
	struct graph_walk walk = graph_out(w->g, id);
	struct graph_edge_to e;

	while (graph_walk_next(&walk, &e)) {
		enum place place = place_of(w, &e);
		struct slot *s = NULL;

		if (place == PLACE_FIELD) {
			if (c->super && w->classes[c->super - 1].is_strength)
				s = slot_free(w, &w->classes[c->super - 1], id, e.label);
			s = s ?: slot_free(w, c, id, e.label) ?: slot_add(w, c, e.label);
		} else if (place == PLACE_REFERENT && c->super) {
			s = slot_free(w, &w->classes[w->base - 1], id,
				      w->slots.v[w->classes[w->base - 1].first - 1].label);
		} else if (place != PLACE_REFERENT) {
			continue;
		}
		if (s) {
			s->object = id + 1ull;
			s->value = graph_address(w->g, e.id);
		} else if (count) {
			w->lost++;
		}
	}
}

static bool is_instance(const struct writer *w, graph_id id)
{
	return !class_of(w, id)->element && graph_is_class(w->g, id) == GRAPH_NONE;
}

/* Learns the sizes of classes and of references, and which classes refer weakly. */
static void look(struct writer *w)
{
	struct graph_edge_to e;
	bool arrays = false, wide = true;

	for (graph_id id = 0; id < graph_totals(w->g)->objects; id++) {
		struct write_class *c = class_of(w, id);
		struct graph_walk walk = graph_out(w->g, id);
		uint64_t size = graph_size(w->g, id);

		arrays |= c->element == HPROF_OBJECT && size >= ARRAY_HEADER + 16;
		if (is_instance(w, id) && (!c->size || size < c->size))
			c->size = size;
		while (graph_walk_next(&walk, &e)) {
			if (c->element && e.label & GRAPH_LABEL_INDEX)
				wide &= ARRAY_HEADER + 8ull * (e.label & ~GRAPH_LABEL_INDEX) + 8 <=
					size;
			if (e.strength != GRAPH_STRONG) {
				c->s = e.strength;
				w->referent = e.label;
			} else if (!c->element && graph_is_class(w->g, e.id) != GRAPH_NONE &&
				   place_of(w, &e) == PLACE_LOADER)
				w->classes[graph_is_class(w->g, e.id)].loader =
					graph_address(w->g, id);
		}
	}
	w->ref = arrays && wide ? 8 : 4;
}

/* Puts the classes of weak references below those by which a reader knows them. */
static void supers_set(struct writer *w)
{
	static const char *const names[] = { [GRAPH_STRONG] = "",
					     [GRAPH_WEAK] = "java.lang.ref.WeakReference",
					     [GRAPH_SOFT] = "java.lang.ref.SoftReference",
					     [GRAPH_PHANTOM] = "java.lang.ref.PhantomReference" };
	uint32_t known[ARRAY_SIZE(names)] = { 0 };

	w->base = class_named(w, "java.lang.ref.Reference");
	if (!w->base || !w->referent)
		return;
	slot_add(w, &w->classes[w->base - 1], w->referent);
	for (size_t i = GRAPH_WEAK; i < ARRAY_SIZE(names); i++)
		if ((known[i] = class_named(w, names[i]))) {
			w->classes[known[i] - 1].is_strength = true;
			w->classes[known[i] - 1].super = w->base;
		}
	for (uint32_t i = 0; i < w->nclasses; i++) {
		struct write_class *c = &w->classes[i];

		if (c->s != GRAPH_STRONG && !c->is_strength && i + 1 != w->base)
			c->super = known[c->s];
	}
}

/* Takes the bytes of the class's numbers from those that make up its size. The classes above others
 * keep theirs as padding: the graph has the numbers of a class and those above it together. */
static void numbers_fit(struct writer *w, struct write_class *c)
{
	uint32_t class = (uint32_t)(c - w->classes),
		 n = c->is_strength ? 0 : graph_fields(w->g, class, false);

	c->number_at = w->number_sizes.n;
	while (c->nnumbers < n && c->nnumbers < NUMBERS_MAX) {
		unsigned size =
			graph_type_size(graph_field_at(w->g, class, false, c->nnumbers).type);

		if (size > c->pad)
			break;
		vec_push(&w->number_sizes, (uint8_t)size);
		c->pad -= size;
		c->number_bytes += size;
		c->nnumbers++;
	}
}

/* Makes the fields of all classes; those of the classes above first. */
static void fields_make(struct writer *w)
{
	for (int pass = 0; pass < 2; pass++) {
		for (graph_id id = 0; id < graph_totals(w->g)->objects; id++)
			if (is_instance(w, id) && class_of(w, id)->is_strength == !pass)
				slots_fill(w, id, false);
		for (uint32_t i = 0; i < w->nclasses; i++) {
			struct write_class *c = &w->classes[i];
			uint64_t bytes = HEADER;

			if (c->is_strength != !pass)
				continue;
			for (const struct write_class *k = c; k;
			     k = k->super ? &w->classes[k->super - 1] : NULL)
				bytes += (uint64_t)k->n * w->ref + (k == c ? 0 : k->pad);
			if (c->size > bytes && i + 1 != w->base)
				c->pad = c->size - bytes;
			numbers_fit(w, c);
		}
	}
	for (uint32_t i = 0; i < w->slots.n; i++)
		w->slots.v[i].object = w->slots.v[i].asked = 0;
}

static void put_text(struct writer *w, uint64_t id, const char *text, size_t n)
{
	out_char(w->o, TAG_UTF8);
	put_number(w->o, 0, 4);
	put_number(w->o, 8 + n, 4);
	put_number(w->o, id, 8);
	out_mem(w->o, text, n);
}

static void put_label(struct writer *w, struct hash *known, uint32_t label)
{
	char buf[NAME_SIZE];
	const char *text = graph_label_text(w->g, label, buf, sizeof(buf));
	bool fresh;

	hash_put(known, &label, sizeof(label), &fresh);
	if (fresh)
		put_text(w, LABEL_NAME + label, text, strlen(text));
}

static uint32_t numbers_of(const struct writer *w, uint32_t class, bool is_static)
{
	uint32_t n = is_static ? graph_fields(w->g, class, true) : w->classes[class].nnumbers;

	return n < NUMBERS_MAX ? n : NUMBERS_MAX;
}

static uint64_t number_name(uint32_t class, bool is_static, uint32_t k)
{
	return NUMBER_NAME + (((uint64_t) class * 2 + is_static) * NUMBERS_MAX + k);
}

static void put_names(struct writer *w)
{
	struct hash known = { 0 };
	struct graph_edge_to e;
	struct out name;

	out_init(&name, NULL);
	for (uint32_t i = 0; i < w->nclasses; i++) {
		graph_id id = graph_class_id(w->g, i);

		name.n = 0;
		put_class_name(&name, graph_class_text(w->g, i));
		put_text(w, CLASS_NAME + i, name.v, name.n);
		if (id == GRAPH_NONE)
			continue;
		for (struct graph_walk walk = graph_out(w->g, id); graph_walk_next(&walk, &e);)
			put_label(w, &known, e.label);
	}
	for (uint32_t i = 0; i < w->slots.n; i++)
		put_label(w, &known, w->slots.v[i].label);
	for (uint32_t i = 0; i < w->nclasses; i++)
		for (int is_static = 0; is_static < 2; is_static++)
			for (uint32_t k = 0; k < numbers_of(w, i, is_static); k++) {
				const char *text = graph_field_at(w->g, i, is_static, k).name;

				put_text(w, number_name(i, is_static, k), text, strlen(text));
			}
	put_text(w, PAD_NAME, "(padding)", 9);
	for (uint32_t i = 0; i < w->nclasses; i++) {
		out_char(w->o, TAG_LOAD_CLASS);
		put_number(w->o, 0, 4);
		put_number(w->o, 24, 4);
		put_number(w->o, i + 1, 4);
		put_number(w->o, class_id(w, i), 8);
		put_number(w->o, 0, 4);
		put_number(w->o, CLASS_NAME + i, 8);
	}
	out_fini(&name);
	hash_fini(&known);
}

static void segment_begin(struct writer *w, uint64_t n)
{
	out_char(w->o, TAG_HEAP_DUMP_SEGMENT);
	put_number(w->o, 0, 4);
	put_number(w->o, n, 4);
}

static void segment_end(struct writer *w)
{
	if (!w->part.n)
		return;
	segment_begin(w, w->part.n);
	out_mem(w->o, w->part.v, w->part.n);
	w->part.n = 0;
}

/* Returns where a record of n bytes goes: large ones get a segment each. */
static struct out *record_begin(struct writer *w, uint64_t n)
{
	if (w->part.n + n > SEGMENT)
		segment_end(w);
	if (n <= SEGMENT)
		return &w->part;
	segment_begin(w, n);
	return w->o;
}

static void put_statics(struct writer *w, graph_id id, uint32_t class, uint64_t super)
{
	struct graph_edge_to e;
	uint32_t n = 0;
	struct out statics;

	out_init(&statics, NULL);
	for (struct graph_walk walk = graph_out(w->g, id); graph_walk_next(&walk, &e);) {
		if (e.strength != GRAPH_STRONG || n == STATICS_MAX) {
			w->lost++;
			continue;
		}
		if (super == graph_address(w->g, e.id) && is_label(w, e.label, "<super>"))
			continue; /* the class dump has it */
		put_number(&statics, LABEL_NAME + e.label, 8);
		out_char(&statics, HPROF_OBJECT);
		put_number(&statics, graph_address(w->g, e.id), 8);
		n++;
	}
	for (uint32_t k = 0; k < numbers_of(w, class, true); k++) {
		struct graph_field f = graph_field_at(w->g, class, true, k);

		put_number(&statics, number_name(class, true, k), 8);
		out_char(&statics, (char)type_of_letter(f.type));
		put_number(&statics, f.value, graph_type_size(f.type));
		n++;
	}
	put_number(&w->part, n, 2);
	out_mem(&w->part, statics.v, statics.n);
	out_fini(&statics);
}

/* The bytes that make up the size are fields of 8, 4, 2 and 1. */
static void put_fields(struct writer *w, const struct write_class *c)
{
	static const uint8_t types[] = { HPROF_LONG, HPROF_INT, HPROF_SHORT, HPROF_BYTE };
	uint64_t longs = c->pad / 8 < PADS_MAX ? c->pad / 8 : PADS_MAX;
	uint32_t class = (uint32_t)(c - w->classes);
	uint64_t n = c->n + c->nnumbers + longs + (uint64_t)__builtin_popcount(c->pad & 7);

	put_number(&w->part, n, 2);
	for (uint32_t i = c->first; i; i = w->slots.v[i - 1].next) {
		put_number(&w->part, LABEL_NAME + w->slots.v[i - 1].label, 8);
		out_char(&w->part, HPROF_OBJECT);
	}
	for (uint32_t k = 0; k < c->nnumbers; k++) {
		put_number(&w->part, number_name(class, false, k), 8);
		out_char(&w->part,
			 (char)type_of_letter(graph_field_at(w->g, class, false, k).type));
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(types); i++) {
		uint64_t times = i ? c->pad >> (3 - i) & 1 : longs;

		while (times--) {
			put_number(&w->part, PAD_NAME, 8);
			out_char(&w->part, (char)types[i]);
		}
	}
}

static uint64_t pad_bytes(const struct write_class *c)
{
	return (c->pad / 8 < PADS_MAX ? c->pad / 8 : PADS_MAX) * 8 + (c->pad & 7);
}

static void put_class(struct writer *w, uint32_t class)
{
	const struct write_class *c = &w->classes[class];
	graph_id id = graph_class_id(w->g, class);

	segment_end(w);
	out_char(&w->part, CLASS_DUMP);
	put_number(&w->part, class_id(w, class), 8);
	put_number(&w->part, 0, 4);
	put_number(&w->part, c->super ? class_id(w, c->super - 1) : 0, 8);
	put_number(&w->part, c->loader, 8);
	out_fill(&w->part, 0, 32);
	put_number(&w->part, c->size, 4);
	put_number(&w->part, 0, 2);
	if (id == GRAPH_NONE)
		put_number(&w->part, 0, 2);
	else
		put_statics(w, id, class, c->super ? class_id(w, c->super - 1) : 0);
	put_fields(w, c);
}

/* Writes the numbers of an object's own class, among which are those of the classes above. */
static void put_values(struct writer *w, const struct write_class *c, graph_id id, struct out *to)
{
	size_t n, at = 0;
	const uint8_t *values = graph_values_of(w->g, id, &n);

	for (uint32_t k = 0; k < c->nnumbers; k++) {
		unsigned size = w->number_sizes.v[c->number_at + k];

		for (unsigned i = size; i-- > 0;)
			out_char(to, at + size <= n ? (char)values[at + i] : 0);
		at += size;
	}
}

static void put_instance(struct writer *w, graph_id id)
{
	uint32_t class = graph_class_of(w->g, id);
	const struct write_class *c = &w->classes[class];
	uint64_t bytes = 0;
	struct out *to;

	slots_fill(w, id, true);
	for (const struct write_class *k = c; k; k = k->super ? &w->classes[k->super - 1] : NULL)
		bytes += 8ull * k->n + k->number_bytes + pad_bytes(k);
	to = record_begin(w, bytes + 25);
	out_char(to, INSTANCE_DUMP);
	put_number(to, graph_address(w->g, id), 8);
	put_number(to, 0, 4);
	put_number(to, class_id(w, class), 8);
	put_number(to, bytes, 4);
	for (const struct write_class *k = c; k; k = k->super ? &w->classes[k->super - 1] : NULL) {
		for (uint32_t i = k->first; i; i = w->slots.v[i - 1].next)
			put_number(to,
				   w->slots.v[i - 1].object == id + 1ull ? w->slots.v[i - 1].value
									 : 0,
				   8);
		put_values(w, k, id, to);
		out_fill(to, 0, pad_bytes(k));
	}
}

/* Writes the elements that are known, at most `most`. Returns their number. */
static uint64_t put_elements(struct writer *w, graph_id id, unsigned size, uint64_t most,
			     struct out *to)
{
	size_t n;
	const uint8_t *values = graph_values_of(w->g, id, &n);

	n /= size;
	if (n > most)
		n = most;
	for (size_t i = 0; i < n; i++)
		for (unsigned k = size; k-- > 0;)
			out_char(to, (char)values[i * size + k]);
	return n;
}

static void put_array(struct writer *w, graph_id id)
{
	uint32_t class = graph_class_of(w->g, id);
	unsigned type = w->classes[class].element, in_memory = w->ref, in_file = 8;
	uint64_t size = graph_size(w->g, id), n, at = 0;
	struct graph_edge_to e;
	struct out *to;
	size_t known;

	for (size_t i = 0; i < ARRAY_SIZE(element_types); i++)
		if (element_types[i].type == type)
			in_memory = in_file = element_types[i].size;
	n = size > ARRAY_HEADER ? (size - ARRAY_HEADER) / in_memory : 0;
	/* the size is rounded up to 8 bytes */
	(void)graph_values_of(w->g, id, &known);
	if (known && known / in_memory <= n && n * in_memory - known < 8)
		n = known / in_memory;
	if (n * in_file > ARRAY_BYTES_MAX)
		n = ARRAY_BYTES_MAX / in_file;
	to = record_begin(w, n * in_file + (type == HPROF_OBJECT ? 25 : 18));
	out_char(to, type == HPROF_OBJECT ? OBJECTS_DUMP : NUMBERS_DUMP);
	put_number(to, graph_address(w->g, id), 8);
	put_number(to, 0, 4);
	put_number(to, n, 4);
	if (type == HPROF_OBJECT)
		put_number(to, class_id(w, class), 8);
	else
		out_char(to, (char)type);
	for (struct graph_walk walk = graph_out(w->g, id);
	     type == HPROF_OBJECT && graph_walk_next(&walk, &e);) {
		uint32_t i = e.label & ~GRAPH_LABEL_INDEX;

		if (!(e.label & GRAPH_LABEL_INDEX) || i < at || i >= n) {
			w->lost++;
			continue;
		}
		out_fill(to, 0, (i - at) * 8);
		put_number(to, graph_address(w->g, e.id), 8);
		at = i + 1ull;
	}
	if (type != HPROF_OBJECT)
		at = put_elements(w, id, in_file, n, to);
	for (uint64_t left = (n - at) * in_file; left;) {
		size_t some = left < SEGMENT ? left : SEGMENT;

		out_fill(to, 0, some);
		left -= some;
	}
}

static void put_root(struct writer *w, uint8_t tag, graph_id id, uint64_t more, unsigned n)
{
	struct out *to = record_begin(w, 9 + n);

	out_char(to, (char)tag);
	put_number(to, graph_address(w->g, id), 8);
	put_number(to, more, n);
}

/* A thread's serial number is its object's, + 1. */
static void put_roots(struct writer *w)
{
	size_t n;
	const struct graph_root_of *roots = graph_roots(w->g, &n);
	struct graph_edge_to e;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(roots[i].kind, "thread"))
			put_root(w, ROOT_THREAD, roots[i].id, (roots[i].id + 1ull) << 32, 8);
		else if (!strcmp(roots[i].kind, "system class"))
			put_root(w, ROOT_CLASS, roots[i].id, 0, 0);
		else if (!strcmp(roots[i].kind, "JNI global"))
			put_root(w, ROOT_JNI_GLOBAL, roots[i].id, 0, 8);
		else
			put_root(w, ROOT_UNKNOWN, roots[i].id, 0, 0);
	}
	for (graph_id id = 0; id < graph_totals(w->g)->objects; id++) {
		if (!is_instance(w, id))
			continue;
		for (struct graph_walk walk = graph_out(w->g, id); graph_walk_next(&walk, &e);) {
			enum place place = place_of(w, &e);

			if (place == PLACE_LOCAL)
				put_root(w, ROOT_LOCAL, e.id, (id + 1ull) << 32 | UINT32_MAX, 8);
			else if (place == PLACE_ROOT)
				put_root(w, ROOT_UNKNOWN, e.id, 0, 0);
		}
	}
}

uint64_t hprof_write(struct graph *g, struct out *o)
{
	static const char magic[] = "JAVA PROFILE 1.0.2";
	struct writer w = { .g = g, .o = o, .nclasses = graph_classes(g) };

	out_init(&w.part, NULL);
	w.classes = xcalloc(w.nclasses + 1ull, sizeof(*w.classes));
	for (uint32_t i = 0; i < w.nclasses; i++)
		class_begin(&w, i);
	look(&w);
	supers_set(&w);
	fields_make(&w);
	out_mem(o, magic, sizeof(magic));
	put_number(o, 8, 4);
	put_number(o, 0, 8);
	put_names(&w);
	for (uint32_t i = 0; i < w.nclasses; i++)
		put_class(&w, i);
	put_roots(&w);
	for (graph_id id = 0; id < graph_totals(g)->objects; id++) {
		if (class_of(&w, id)->element)
			put_array(&w, id);
		else if (graph_is_class(g, id) == GRAPH_NONE)
			put_instance(&w, id);
	}
	segment_end(&w);
	out_char(o, TAG_HEAP_DUMP_END);
	put_number(o, 0, 8);
	out_fini(&w.part);
	vec_fini(&w.slots);
	vec_fini(&w.number_sizes);
	hash_fini(&w.slot_of);
	free(w.classes);
	return w.lost;
}
