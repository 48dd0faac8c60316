/* Where the objects of a class of HotSpot have references: by its fields, and by the map that the
 * collector has of it. */
#include "memory/heaplive/java_heap.h"

enum {
	/* FieldInfo: numbers of 2 bytes */
	FIELD_ACCESS = 0,
	FIELD_NAME = 1,
	FIELD_SIGNATURE = 2,
	FIELD_OFFSET = 4,
	FIELD_SLOTS = 6,
	FIELD_STATIC = 8,
	FIELD_TAG_BITS = 2,
	FIELDS_AT = 4, /* of Array<u2> */
	FIELDS_MAX = 1 << 16,
	/* of the compressed table: an Array<u1>, and flags of a field */
	FIELDS_OF_BYTES = 4,
	STREAM_MAX = 1 << 20,
	STREAM_VALUE = 1,
	STREAM_GENERIC = 4,
	STREAM_CONTENDED = 16,
	NAME_BYTES = 256,
	SUPERS_MAX = 512,
	MAPS_MAX = 1 << 12,
	REFS_MAX = 1 << 24, /* of all classes */
};

/* A field of a class. */
struct field {
	uint64_t constants;       /* of the class that declares it */
	uint32_t name, signature; /* in them */
	uint32_t at, access;      /* at: bytes from the beginning of the object */
};

static uint32_t symbol_read(const struct java_reader *x, uint64_t constants, uint32_t index,
			    char *text)
{
	const struct jvm_layout *l = &x->jvm->layout;
	uint64_t symbol, n;

	if (!jvm_word(x->jvm, constants + l->size.constants + index * 8ull, &symbol))
		return 0;
	n = jvm_get(x->jvm, symbol, l->symbol_length);
	if (n > NAME_BYTES)
		n = NAME_BYTES;
	return space_read_some(x->jvm->runtime.space, symbol + l->symbol_text.at, text,
			       (uint32_t)n);
}

/* The graph keeps the name: it costs its length. */
static uint32_t field_label(struct java_reader *x, uint64_t constants, uint32_t index)
{
	char name[NAME_BYTES];
	uint32_t n;

	if (!graph_wanted(x->graph)->labels)
		return GRAPH_LABEL_NONE;
	n = symbol_read(x, constants, index, name);
	return n && java_afford(x, n) ? graph_label(x->graph, name, n) : GRAPH_LABEL_NONE;
}

static bool is_referent(const struct java_reader *x, const struct java_class *c, uint64_t constants,
			uint32_t index)
{
	char name[NAME_BYTES];

	return c->name && !strcmp(c->name, "java/lang/ref/Reference") &&
	       symbol_read(x, constants, index, name) == 8 && !memcmp(name, "referent", 8);
}

static void ref_add(struct java_reader *x, uint32_t at, uint32_t label,
		    enum graph_strength strength)
{
	if (x->refs.n < REFS_MAX)
		vec_push(&x->refs, (struct java_ref){ at, label, strength });
}

/* Adds a field with a number to the class, unless the fields before it fill an instance. */
static void number_add(struct java_reader *x, struct java_class *c, const struct field *f,
		       char type, bool of_mirror)
{
	uint32_t size = graph_type_size(type), n;
	char name[NAME_BYTES];
	uint64_t value = 0;

	if (!size || !graph_wanted(x->graph)->values || !java_afford(x, 8) ||
	    (!of_mirror && (c->number_bytes + size > c->size || x->numbers.n >= REFS_MAX)))
		return;
	n = symbol_read(x, f->constants, f->name, name);
	if (!java_afford(x, n))
		return;
	if (of_mirror) {
		if (c->mirror)
			value = jvm_get(x->jvm, c->mirror,
					(struct jvm_member){ f->at, (uint8_t)size });
	} else {
		vec_push(&x->numbers, ((struct java_number){ f->at, size }));
		c->nnumbers++;
		c->number_bytes += size;
	}
	graph_class_field(x->graph, c->number, of_mirror, type, graph_field_name(x->graph, name, n),
			  value);
}

/* Adds a field, unless it is of the other kind. */
static void field_add(struct java_reader *x, const struct java_class *owner, struct java_class *c,
		      bool of_mirror, const struct field *f)
{
	char signature[NAME_BYTES];

	if (!(f->access & FIELD_STATIC) == of_mirror ||
	    !symbol_read(x, f->constants, f->signature, signature))
		return;
	if (*signature != 'L' && *signature != '[') {
		number_add(x, c, f, *signature, of_mirror);
		return;
	}
	ref_add(x, f->at, field_label(x, f->constants, f->name),
		!of_mirror && is_referent(x, owner, f->constants, f->name) ? c->strength
									   : GRAPH_STRONG);
}

/* From Java 21 on, fields are numbers of a compressed table: how many there are, and how many of
 * the JVM's own are behind them; then for each its name, signature, offset, access and flags, and
 * what the flags say. */
static void stream_add(struct java_reader *x, const struct java_class *owner, struct java_class *c,
		       bool of_mirror, uint64_t constants)
{
	uint64_t at = jvm_get(x->jvm, owner->address, x->layout.class_stream);
	uint64_t length = at ? jvm_get(x->jvm, at, (struct jvm_member){ 0, 4 }) : 0;
	uint32_t n = length < STREAM_MAX ? (uint32_t)length : STREAM_MAX, i = 0, excluded, fields;
	cleanup_free uint8_t *p = NULL;

	if (!n || !java_afford(x, n / 8 + 1))
		return;
	p = xmalloc(n);
	n = space_read_some(x->jvm->runtime.space, at + FIELDS_OF_BYTES, p, n);
	excluded = x->jvm->layout.excluded;
	fields = jvm_number(excluded, p, n, &i);
	(void)jvm_number(excluded, p, n, &i);
	while (fields-- && i < n && java_afford(x, 8)) {
		struct field f = { .constants = constants };
		uint32_t flags;

		f.name = jvm_number(excluded, p, n, &i);
		f.signature = jvm_number(excluded, p, n, &i);
		f.at = jvm_number(excluded, p, n, &i);
		f.access = jvm_number(excluded, p, n, &i);
		flags = jvm_number(excluded, p, n, &i);
		for (uint32_t bit = 1; bit <= STREAM_CONTENDED; bit <<= 1)
			if (flags & bit & (STREAM_VALUE | STREAM_GENERIC | STREAM_CONTENDED))
				(void)jvm_number(excluded, p, n, &i);
		field_add(x, owner, c, of_mirror, &f);
	}
}

/* Adds the references among the fields that `owner` declares, to an instance of c or to owner's
 * mirror; also the numbers. */
static void fields_add(struct java_reader *x, const struct java_class *owner, struct java_class *c,
		       bool of_mirror)
{
	const struct java_layout *l = &x->layout;
	uint64_t constants = jvm_get(x->jvm, owner->address, x->jvm->layout.class_constants),
		 fields = jvm_get(x->jvm, owner->address, l->class_fields),
		 n = jvm_get(x->jvm, owner->address, l->class_nfields);

	if (l->class_stream.width) {
		stream_add(x, owner, c, of_mirror, constants);
		return;
	}
	for (uint64_t i = 0; fields && i < n && i < FIELDS_MAX && java_afford(x, 8); i++) {
		uint16_t w[FIELD_SLOTS];
		struct field f = { .constants = constants };

		if (space_read_some(x->jvm->runtime.space, fields + FIELDS_AT + i * sizeof(w), w,
				    sizeof(w)) != sizeof(w))
			return;
		f.access = w[FIELD_ACCESS];
		f.name = w[FIELD_NAME];
		f.signature = w[FIELD_SIGNATURE];
		f.at = (w[FIELD_OFFSET] | (uint32_t)w[FIELD_OFFSET + 1] << 16) >> FIELD_TAG_BITS;
		field_add(x, owner, c, of_mirror, &f);
	}
}

static bool has_ref(const struct java_reader *x, const struct java_class *c, uint32_t at)
{
	for (uint32_t i = c->ref; i < x->refs.n; i++)
		if (x->refs.v[i].at == at)
			return true;
	return false;
}

/* Adds the references that the JVM has added to the declared fields. */
static void maps_add(struct java_reader *x, const struct java_class *c)
{
	const struct java_layout *l = &x->layout;
	uint32_t step = x->narrow ? 4 : 8;
	uint64_t n = jvm_get(x->jvm, c->address, l->class_maps),
		 at = c->address + ((l->size.instance_class + 7) & ~7ull) +
		      8 * (jvm_get(x->jvm, c->address, l->class_vtable) +
			   jvm_get(x->jvm, c->address, l->class_itable));

	for (uint64_t i = 0; i < n && i < MAPS_MAX && java_afford(x, 1); i++) {
		struct {
			uint32_t at, n;
		} map;

		if (space_read_some(x->jvm->runtime.space, at + i * sizeof(map), &map,
				    sizeof(map)) != sizeof(map))
			return;
		for (uint32_t k = 0; k < map.n && map.at + (uint64_t)k * step < c->size; k++) {
			if (!java_afford(x, x->refs.n - c->ref + 1))
				return;
			if (!has_ref(x, c, map.at + k * step))
				ref_add(x, map.at + k * step, GRAPH_LABEL_NONE, GRAPH_STRONG);
		}
	}
}

void java_lay_out(struct java_reader *x, struct java_class *c)
{
	uint32_t most = c->size / (x->narrow ? 4 : 8);
	const struct java_class *owner = c;
	uint64_t cache;

	c->laid_out = true;
	if (c->kind == JAVA_REFERENCES || c->kind == JAVA_NUMBERS)
		return;
	c->ref = x->refs.n;
	c->number_at = x->numbers.n;
	for (int depth = 0; owner && depth < SUPERS_MAX && x->refs.n - c->ref <= most; depth++) {
		if (java_afford(x, 4))
			fields_add(x, owner, c, false);
		owner = owner->super ? java_class_at(x, owner->super) : NULL;
	}
	maps_add(x, c);
	c->nrefs = x->refs.n - c->ref;
	if (c->nrefs > most) /* of a class that is damaged */
		c->nrefs = most;
	c->static_ = x->refs.n;
	fields_add(x, c, c, true);
	c->nstatic = x->refs.n - c->static_;
	cache = jvm_get(x->jvm, jvm_get(x->jvm, c->address, x->jvm->layout.class_constants),
			x->layout.constants_cache);
	if (cache)
		c->constants = java_handle(x, cache + x->layout.cache_references.at);
}
