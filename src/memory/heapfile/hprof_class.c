/* Classes of an HPROF file: their names, their fields, and where instances have references. */
#include "memory/heapfile/hprof.h"
#include "memory/heapfile/java_name.h"

enum {
	SUPERS_MAX = 512,      /* classes above a class */
	REFS_SPARE = 1 << 20,  /* references of all layouts that need no declared fields */
	STEPS_SPARE = 1 << 24, /* fields that they go over, likewise */
};

static uint32_t class_place(const struct hprof *h, uint64_t id)
{
	uint32_t i = (uint32_t)hash_word(id) & h->class_mask;

	while (h->class_hash[i].number && h->class_hash[i].id != id)
		i = (i + 1) & h->class_mask;
	return i;
}

static void classes_grow(struct hprof *h)
{
	h->class_mask = h->class_mask * 2 + 1;
	if (h->class_mask < 1023)
		h->class_mask = 1023;
	free(h->class_hash);
	h->class_hash = xcalloc((size_t)h->class_mask + 1, sizeof(*h->class_hash));
	for (uint32_t i = 0; i < h->classes.n; i++) {
		uint32_t place = class_place(h, h->classes.v[i].id);

		h->class_hash[place].id = h->classes.v[i].id;
		h->class_hash[place].number = i + 1;
	}
}

struct hprof_class *hprof_class(struct hprof *h, uint64_t id)
{
	uint32_t place;

	if (h->classes.n >= h->class_mask / 2)
		classes_grow(h);
	place = class_place(h, id);
	if (!h->class_hash[place].number) {
		vec_push(&h->classes, (struct hprof_class){ .id = id });
		h->class_hash[place].id = id;
		h->class_hash[place].number = h->classes.n;
	}
	return &h->classes.v[h->class_hash[place].number - 1];
}

static struct hprof_class *class_find(struct hprof *h, uint64_t id)
{
	uint32_t number = h->classes.n ? h->class_hash[class_place(h, id)].number : 0;

	return number ? &h->classes.v[number - 1] : NULL;
}

/* Returns how strong the field `referent` of java.lang.ref.Reference is in this class. */
static enum graph_strength strength_of(struct hprof *h, const struct hprof_class *c)
{
	static const struct {
		const char *name;
		enum graph_strength strength;
	} known[] = { { "java/lang/ref/WeakReference", GRAPH_WEAK },
		      { "java/lang/ref/SoftReference", GRAPH_SOFT },
		      { "java/lang/ref/PhantomReference", GRAPH_PHANTOM } };

	for (int depth = 0; c && depth < SUPERS_MAX; depth++) {
		const char *name = intern_text(&h->names, c->name);

		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			if (!strcmp(name, known[i].name))
				return known[i].strength;
		c = c->super ? class_find(h, c->super) : NULL;
	}
	return GRAPH_STRONG;
}

/* The letters of types of arrays in names such as "[[I". */
static const char letters[HPROF_NTYPES + 1] = "????ZCFDBSIJ";

/* Fields may share a long name: it is looked up once. */
static struct hprof_name *name_of_graph(struct hprof *h, uint32_t name)
{
	while (h->of_names.n <= name)
		vec_push(&h->of_names, ((struct hprof_name){ 0 }));
	return &h->of_names.v[name];
}

static uint32_t label_of(struct hprof *h, uint32_t name)
{
	struct hprof_name *n = name_of_graph(h, name);
	const char *text = intern_text(&h->names, name);

	if (!n->label)
		n->label = graph_label(h->graph, text, strlen(text)) + 1;
	return n->label - 1;
}

static uint32_t field_name_of(struct hprof *h, uint32_t name)
{
	struct hprof_name *n = name_of_graph(h, name);
	const char *text = intern_text(&h->names, name);

	if (!n->field)
		n->field = graph_field_name(h->graph, text, strlen(text)) + 1;
	return n->field - 1;
}

static void number_field(struct hprof *h, struct hprof_class *c, uint8_t type, uint32_t name,
			 uint32_t at)
{
	uint32_t size = hprof_type_size(h, type);

	if (!graph_wanted(h->graph)->values)
		return;
	vec_push(&h->numbers, ((struct hprof_number){ at, size }));
	c->nnumbers++;
	graph_class_field(h->graph, hprof_graph_class(h, c), false, letters[type],
			  field_name_of(h, name), 0);
}

/* A file can say that a class is above itself: it counts once. */
static bool lay_out(struct hprof *h, struct hprof_class *c)
{
	const enum graph_strength strength = strength_of(h, c);
	const uint32_t walk = (uint32_t)(c - h->classes.v) + 1;
	struct hprof_class *above = c;
	uint32_t at = 0;

	c->ref = h->refs.n;
	c->number = h->numbers.n;
	for (int depth = 0; above && above->walked != walk && depth < SUPERS_MAX; depth++) {
		bool reference =
			!strcmp(intern_text(&h->names, above->name), "java/lang/ref/Reference");

		for (uint32_t i = 0; i < above->nfields; i++) {
			const struct hprof_field *f = &h->fields.v[above->field + i];
			const char *name = intern_text(&h->names, f->name);

			if (f->type == HPROF_OBJECT)
				vec_push(&h->refs,
					 (struct hprof_ref){ at, label_of(h, f->name),
							     reference && !strcmp(name, "referent")
								     ? strength
								     : GRAPH_STRONG });
			else
				number_field(h, c, f->type, f->name, at);
			at += hprof_type_size(h, f->type);
		}
		above->walked = walk;
		h->laid_out += above->nfields + 1;
		if ((uint64_t)h->refs.n + h->numbers.n > 8ull * h->fields.n + REFS_SPARE ||
		    h->laid_out > 64ull * h->fields.n + STEPS_SPARE)
			return hprof_bad(h, "the classes have too many fields");
		above = above->super ? class_find(h, above->super) : NULL;
	}
	c->nrefs = h->refs.n - c->ref;
	c->bytes = at;
	c->laid_out = true;
	return true;
}

struct hprof_class *hprof_class_laid_out(struct hprof *h, uint64_t id)
{
	struct hprof_class *c = h->last_class ? &h->classes.v[h->last_class - 1] : NULL;

	if (c && c->id == id)
		return c;
	c = class_find(h, id);
	if (!c || !c->described || (!c->laid_out && !lay_out(h, c)))
		return NULL;
	h->last_class = (uint32_t)(c - h->classes.v) + 1;
	return c;
}

uint32_t hprof_graph_class(struct hprof *h, struct hprof_class *c)
{
	if (!c->graph_class && h->reader) {
		h->stuck = true;
		return 0;
	}
	if (!c->graph_class)
		c->graph_class = graph_class(h->graph, c->id) + 1;
	return c->graph_class - 1;
}

bool hprof_classes_prepare(struct hprof *h)
{
	for (uint32_t i = 0; i < h->classes.n && !h->error; i++) {
		hprof_graph_class(h, &h->classes.v[i]);
		hprof_class_laid_out(h, h->classes.v[i].id);
	}
	for (unsigned type = HPROF_BOOLEAN; type < HPROF_NTYPES; type++)
		hprof_array_class(h, type);
	return !h->error;
}

uint32_t hprof_array_class(struct hprof *h, unsigned type)
{
	char name[3] = { '[', letters[type], 0 };
	struct out o;

	if (h->array_class[type])
		return h->array_class[type] - 1;
	for (uint32_t i = 0; i < h->classes.n; i++)
		if (!strcmp(intern_text(&h->names, h->classes.v[i].name), name))
			h->array_class[type] = hprof_graph_class(h, &h->classes.v[i]) + 1;
	if (!h->array_class[type]) {
		/* No id is so high and odd. */
		h->array_class[type] = graph_class(h->graph, UINT64_MAX - type * 2) + 1;
		out_init(&o, NULL);
		java_name(&o, name);
		graph_class_name(h->graph, h->array_class[type] - 1, o.v, o.n);
		out_fini(&o);
	}
	return h->array_class[type] - 1;
}

/* Adds the number of a static field at in.pos to a class of the graph. */
static void static_number(struct hprof *h, uint32_t class, unsigned type, uint64_t name_id)
{
	uint8_t bytes[8] = { 0 };
	uint64_t value;

	hprof_turn(bytes, h->in.pos, hprof_type_size(h, type));
	memcpy(&value, bytes, sizeof(value));
	graph_class_field(h->graph, class, true, letters[type],
			  field_name_of(h, hprof_name(h, name_id)), value);
}

/* The value of a static field or constant at in.pos, behind its type: an edge from the class. */
static bool static_value(struct hprof *h, unsigned type, uint32_t label, uint32_t *bytes)
{
	unsigned size = hprof_type_size(h, type);

	if (!size)
		return hprof_bad(h, "a field of type %u, which there is not", type);
	if (!hprof_need(h, size))
		return false;
	if (type == HPROF_OBJECT && !h->skim)
		graph_edge(h->graph, hprof_id(h, h->in.pos), label, GRAPH_STRONG);
	*bytes += type == HPROF_OBJECT ? h->ref_size : size;
	h->in.pos += size;
	return true;
}

static bool statics_read(struct hprof *h, uint32_t class, uint32_t *bytes)
{
	unsigned s = h->id_size;

	if (!hprof_need(h, 2))
		return false;
	for (uint32_t n = hprof_u16(h->in.pos), i = (h->in.pos += 2, 0); i < n; i++) {
		uint32_t unused = 0;

		if (!hprof_need(h, 3))
			return false;
		h->in.pos += 3;
		if (!static_value(h, h->in.pos[-1], GRAPH_LABEL_NONE, &unused))
			return false;
	}
	if (!hprof_need(h, 2))
		return false;
	for (uint32_t n = hprof_u16(h->in.pos), i = (h->in.pos += 2, 0); i < n; i++) {
		uint32_t label = GRAPH_LABEL_NONE;

		if (!hprof_need(h, s + 1))
			return false;
		if (!h->skim && graph_wanted(h->graph)->labels && h->in.pos[s] == HPROF_OBJECT)
			label = label_of(h, hprof_name(h, hprof_id(h, h->in.pos)));
		h->in.pos += s + 1;
		if (!h->skim && graph_wanted(h->graph)->values && h->in.pos[-1] != HPROF_OBJECT &&
		    hprof_type_size(h, h->in.pos[-1])) {
			unsigned type = h->in.pos[-1];
			uint64_t name = hprof_id(h, h->in.pos - s - 1);

			if (!hprof_need(h, hprof_type_size(h, type)))
				return false;
			static_number(h, class, type, name);
			if (!static_value(h, type, label, bytes))
				return false;
			continue;
		}
		if (!static_value(h, h->in.pos[-1], label, bytes))
			return false;
	}
	return true;
}

static bool fields_read(struct hprof *h, uint32_t number)
{
	unsigned s = h->id_size;
	uint32_t n, first = h->fields.n;
	bool known = h->classes.v[number].described;

	if (!hprof_need(h, 2))
		return false;
	n = hprof_u16(h->in.pos);
	h->in.pos += 2;
	for (uint32_t i = 0; i < n; i++) {
		struct hprof_field f;

		if (!hprof_need(h, s + 1))
			return false;
		f = (struct hprof_field){ hprof_name(h, hprof_id(h, h->in.pos)), h->in.pos[s] };
		if (!hprof_type_size(h, f.type))
			return hprof_bad(h, "a field of type %u, which there is not", f.type);
		if (!known)
			vec_push(&h->fields, f);
		h->in.pos += s + 1;
	}
	if (!known) {
		h->classes.v[number].field = first;
		h->classes.v[number].nfields = n;
		h->classes.v[number].described = true;
	}
	return true;
}

bool hprof_class_dump(struct hprof *h)
{
	unsigned s = h->id_size;
	const char *const labels[] = { "<super>", "<loader>", "<signers>", "<domain>" };
	uint32_t number, bytes = 0, of_graph = 0;
	const uint8_t *p;
	struct hprof_class *c;
	uint64_t id;

	h->stuck |= h->reader;
	if (h->stuck || !hprof_need(h, 7 * s + 8))
		return false;
	p = h->in.pos;
	id = hprof_id(h, p);
	c = hprof_class(h, id);
	number = (uint32_t)(c - h->classes.v);
	c->super = hprof_id(h, p + s + 4);
	if (!h->skim) {
		uint32_t class = hprof_graph_class(h, hprof_class(h, h->class_class));

		c = hprof_class_laid_out(h, h->class_class);
		if (h->error)
			return false;
		graph_object(h->graph, id, class, c ? hprof_instance_size(h, c) : 0);
		for (unsigned i = 0; i < ARRAY_SIZE(labels); i++)
			graph_edge(h->graph, hprof_id(h, p + s + 4 + i * s),
				   graph_label(h->graph, labels[i], strlen(labels[i])),
				   GRAPH_STRONG);
		c = &h->classes.v[number];
		of_graph = hprof_graph_class(h, c);
		graph_class_object(h->graph, of_graph, id);
	}
	h->in.pos += 7 * s + 8;
	if (!statics_read(h, of_graph, &bytes) || !fields_read(h, number))
		return false;
	if (!h->skim)
		graph_object_add(h->graph, bytes);
	return true;
}

static void name_class(struct hprof *h, uint32_t graph_class, const char *name)
{
	struct out o;

	out_init(&o, NULL);
	java_name(&o, name);
	graph_class_name(h->graph, graph_class, o.v, o.n);
	out_fini(&o);
}

void hprof_classes_finish(struct hprof *h)
{
	for (uint32_t i = 0; i < h->classes.n; i++) {
		struct hprof_class *c = &h->classes.v[i];

		if (!c->graph_class)
			continue;
		if (c->name)
			name_class(h, c->graph_class - 1, intern_text(&h->names, c->name));
		if (c->laid_out)
			graph_class_size(h->graph, c->graph_class - 1, hprof_instance_size(h, c));
	}
}
