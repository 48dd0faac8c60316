/* What V8's objects are called: by the function that has made them, as V8 does in its own
 * snapshots, else by their kind. */
#include "memory/heaplive/v8_heap.h"

enum {
	HEAD = 24, /* Map, properties, elements */
	ONE_BYTE_INTERNALIZED = 8,
	SYMBOL = 128,
	TRANSITIONS_MAX = 1 << 12,
	PROTOTYPES_MAX = 64,
	DESCRIPTOR = 24,
	DICTIONARY_HEAD = 3, /* words before a dictionary's own prefix */
	ENTRY = 3,           /* words of an entry */
	ARRAY_DATA = 16,
	STRING_LENGTH = 12,
	/* bits of a Map */
	NEW_IS_BASE = 1, /* `new` made it by the class's own function */
	OWN_SHIFT = 10,  /* number of its descriptors */
	OWN_MASK = 0x3ff,
	PROTOTYPE_BELOW = 1, /* the bit below is_dictionary_map: it is a prototype */
	/* of a descriptor's details */
	ACCESSOR = 1,
	IN_DESCRIPTOR = 1 << 5,
	INDEX_SHIFT = 19,
};

static const char *const group_names[V8_GROUPS] = {
	[V8_GROUP_OBJECT] = "Object",
	[V8_GROUP_GLOBAL] = "(global object)",
	[V8_GROUP_STRING] = "(string)",
	[V8_GROUP_CONCATENATED] = "(concatenated string)",
	[V8_GROUP_SLICED] = "(sliced string)",
	[V8_GROUP_SYMBOL] = "(symbol)",
	[V8_GROUP_BIG_INT] = "(bigint)",
	[V8_GROUP_NUMBER] = "(number)",
	[V8_GROUP_ARRAY] = "(array)",
	[V8_GROUP_CODE] = "(compiled code)",
	[V8_GROUP_SHAPE] = "(object shape)",
	[V8_GROUP_CONTEXT] = "system / Context",
	[V8_GROUP_NATIVE_CONTEXT] = "system / NativeContext",
	[V8_GROUP_SYSTEM] = "(system)",
};

uint32_t v8_class_named(struct v8_reader *x, const char *name)
{
	bool fresh;
	uint64_t *known = hash_put(&x->names, name, (uint32_t)strlen(name), &fresh);

	if (fresh) {
		const uint32_t class = graph_class(x->graph, x->nnames++);

		graph_class_name(x->graph, class, name, strlen(name));
		*known = class + 1;
	}
	return (uint32_t)*known - 1;
}

static int32_t type_at(struct v8_reader *x, uint64_t pointer)
{
	const uint8_t *p = v8_object(x, pointer, 8);
	const struct v8_map *m = p ? v8_map_at(x, v8_at(p, 0)) : NULL;

	return m ? m->type : V8_NO_TYPE;
}

static bool is_function(const struct v8_reader *x, int32_t type)
{
	return type >= x->v8->n.type_function && type <= x->v8->n.type_function + V8_FUNCTIONS;
}

/* Returns the name of a function object, NULL: it is none, or has no name. */
static const char *function_name(struct v8_reader *x, uint64_t function)
{
	const uint32_t at = (uint32_t)x->v8->n.function_shared;
	const uint8_t *p = v8_object(x, function, at + 8);
	const char *name;

	if (!p || !is_function(x, type_at(x, function)) ||
	    type_at(x, v8_at(p, at)) != x->v8->n.type_shared)
		return NULL;
	name = v8_shared_name(x->v8, v8_at(p, at));
	return name && *name ? name : NULL;
}

static bool string_is(struct v8_reader *x, uint64_t string, const char *text)
{
	const uint64_t n = strlen(text);
	const uint8_t *p = v8_object(x, string, ARRAY_DATA + n);

	return p && v8_at4(p, STRING_LENGTH) == n && type_at(x, string) == ONE_BYTE_INTERNALIZED &&
	       !memcmp(p + ARRAY_DATA, text, n);
}

/* Is this key the name, whose address is *name once it was met? */
static bool key_is(struct v8_reader *x, uint64_t key, struct v8_name *name)
{
	const uint8_t *p;

	if (name->address)
		return key == name->address;
	if (name->symbol) {
		const uint32_t at = (uint32_t)x->v8->n.symbol_name;

		p = v8_object(x, key, at + 8);
		if (!p || type_at(x, key) != SYMBOL || !string_is(x, v8_at(p, at), name->text))
			return false;
	} else if (!string_is(x, key, name->text)) {
		return false;
	}
	name->address = key;
	return true;
}

/* Returns the value of a field, 0: it cannot be read. */
static uint64_t field_value(const struct v8_reader *x, const uint8_t *map, uint64_t object,
			    uint32_t index)
{
	const uint32_t first = map[x->v8->n.map_first], words = map[x->v8->n.map_words];
	const uint32_t inside = words > first ? words - first : 0;
	const uint8_t *p;
	uint64_t at;

	if (index < inside) {
		at = (first + index) * 8ull;
		p = v8_object(x, object, at + 8);
	} else {
		at = ARRAY_DATA + (index - inside) * 8ull;
		p = v8_object(x, object, HEAD);
		p = p ? v8_object(x, v8_at(p, (uint32_t)x->v8->n.object_properties), at + 8) : NULL;
	}
	return p ? v8_at(p, at) : 0;
}

static uint64_t dictionary_value(struct v8_reader *x, uint64_t dictionary, struct v8_name *name)
{
	const uint8_t *p = v8_object(x, dictionary, ARRAY_DATA);
	const struct v8_map *m = p ? v8_map_at(x, v8_at(p, 0)) : NULL;
	uint64_t words, first = DICTIONARY_HEAD + (uint32_t)x->v8->n.names_prefix;

	if (!m || m->holds != V8_NAMES)
		return 0;
	words = v8_at4(p, 12);
	if (!v8_object(x, dictionary, ARRAY_DATA + words * 8) || words < first)
		return 0;
	for (uint64_t i = first; i + ENTRY <= words && x->budget; i += ENTRY) {
		const uint8_t *entry = p + ARRAY_DATA + i * 8;

		x->budget--;
		if (key_is(x, v8_at(entry, 0), name))
			return v8_at(entry, 8);
	}
	return 0;
}

/* Finds a property of an object, without those of its prototypes. 0: it has no such. */
static uint64_t property(struct v8_reader *x, uint64_t object, struct v8_name *name)
{
	const struct v8_numbers *n = &x->v8->n;
	const uint8_t *p = v8_object(x, object, HEAD), *map, *d;
	uint32_t bits, own;

	map = p ? v8_object(x, v8_at(p, 0), V8_MAP_SIZE) : NULL;
	if (!map || !v8_map_at(x, v8_at(p, 0)))
		return 0;
	bits = v8_at4(map, (uint32_t)n->map_bits3);
	if (bits >> n->map_dictionary & 1)
		return dictionary_value(x, v8_at(p, (uint32_t)n->object_properties), name);
	own = bits >> OWN_SHIFT & OWN_MASK;
	d = v8_object(x, v8_at(map, (uint32_t)n->map_descriptors),
		      DESCRIPTOR + own * (uint64_t)DESCRIPTOR);
	for (uint32_t i = 0; d && i < own && x->budget; i++) {
		const uint8_t *entry = d + DESCRIPTOR + i * (uint64_t)DESCRIPTOR;
		const uint32_t details = v8_at4(entry, 12);

		x->budget--;
		if (!key_is(x, v8_at(entry, 0), name))
			continue;
		if (details & ACCESSOR)
			return 0;
		return details & IN_DESCRIPTOR
			       ? v8_at(entry, 16)
			       : field_value(x, map, object, details >> INDEX_SHIFT & OWN_MASK);
	}
	return 0;
}

/* Finds the function that made the objects of a Map: a Map that a transition has made leads to the
 * Map before. */
static uint64_t maker(struct v8_reader *x, const uint8_t *map)
{
	uint64_t at = v8_at(map, (uint32_t)x->v8->n.map_constructor);

	for (uint32_t i = 0; i < TRANSITIONS_MAX && x->budget; i++) {
		const uint8_t *p = v8_object(x, at, V8_MAP_SIZE);

		x->budget--;
		if (!p || type_at(x, at) != x->version->map)
			return at;
		at = v8_at(p, (uint32_t)x->v8->n.map_constructor);
	}
	return 0;
}

/* Returns the text of a property of an object or of its prototypes that is a string. */
static const char *string_property(struct v8_reader *x, uint64_t object, struct v8_name *name)
{
	for (uint32_t i = 0; i < PROTOTYPES_MAX; i++) {
		const uint8_t *p = v8_object(x, object, HEAD);
		uint64_t value = property(x, object, name);

		if (value)
			return type_at(x, value) < SYMBOL ? v8_text(x->v8, value) : NULL;
		p = p ? v8_object(x, v8_at(p, 0), V8_MAP_SIZE) : NULL;
		if (!p)
			return NULL;
		object = v8_at(p, (uint32_t)x->v8->n.map_prototype);
	}
	return NULL;
}

/* Returns the name of the function `constructor` that an object's prototypes have. */
static const char *prototype_name(struct v8_reader *x, const uint8_t *map)
{
	for (uint32_t i = 0; i < PROTOTYPES_MAX; i++) {
		const uint64_t object = v8_at(map, (uint32_t)x->v8->n.map_prototype);
		const uint8_t *p = v8_object(x, object, HEAD);
		const uint64_t value = property(x, object, &x->constructor);

		if (value)
			return function_name(x, value);
		map = p ? v8_object(x, v8_at(p, 0), V8_MAP_SIZE) : NULL;
		if (!map)
			return NULL;
	}
	return NULL;
}

/* The same steps as JSReceiver::GetConstructorName() takes. */
static const char *object_name(struct v8_reader *x, uint64_t pointer, uint64_t map_pointer)
{
	const uint8_t *map = v8_object(x, map_pointer, V8_MAP_SIZE);
	const uint32_t bits = v8_at4(map, (uint32_t)x->v8->n.map_bits3);
	const bool is_prototype = bits >> (x->v8->n.map_dictionary - PROTOTYPE_BELOW) & 1;
	const char *name = function_name(x, maker(x, map)), *more;

	if (name && map[x->v8->n.map_bits2] & NEW_IS_BASE && !is_prototype &&
	    strcmp(name, "Object") != 0)
		return name;
	more = string_property(x, pointer, &x->string_tag);
	if (more && *more)
		return more;
	more = prototype_name(x, map);
	return more ?: name ?: group_names[V8_GROUP_OBJECT];
}

static uint32_t closure_class(struct v8_reader *x, const uint8_t *p, uint64_t size)
{
	const uint32_t at = (uint32_t)x->v8->n.function_shared;
	const uint64_t shared = at + 8 <= size ? v8_at(p, at) : 0;
	uint64_t *known = hash_get(&x->closures, &shared, sizeof(shared));
	const char *name = NULL;
	char *text;
	uint32_t class;

	if (known)
		return (uint32_t)*known;
	if (type_at(x, shared) == x->v8->n.type_shared)
		name = v8_shared_name(x->v8, shared);
	text = name && *name ? xasprintf("(closure %s)", name) : xstrdup("(closure)");
	class = v8_class_named(x, text);
	free(text);
	*hash_put(&x->closures, &shared, sizeof(shared), NULL) = class;
	return class;
}

uint32_t v8_class(struct v8_reader *x, uint32_t map, uint64_t addr, const uint8_t *p, uint64_t size)
{
	const struct v8_map *m = &x->maps.v[map];
	uint32_t class;

	if (m->class)
		return m->class - 1;
	if (m->closure)
		return closure_class(x, p, size);
	class = v8_class_named(x, m->group == V8_GROUP_OBJECT
					  ? object_name(x, addr + V8_TAG, m->address)
					  : group_names[m->group]);
	x->maps.v[map].class = class + 1;
	return class;
}
