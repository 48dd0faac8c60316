/* Names that only the objects of functions have: V8 takes an own property "name" that is a string
 * before the name in the source. Methods with computed names have one, and functions for which a
 * program defines it.
 *
 * The property is the second of a function's descriptors, or lies in a dictionary. Elsewhere it is
 * not looked for. bpf/javascript.bpf.h makes the same steps. */
#include "program/runtime/v8/v8.h"
#include "wire/language.h"

bool v8_is_function(struct v8 *v, uint64_t *object)
{
	const int32_t type = v8_type(v, object);

	return type >= v->n.type_function && type <= v->n.type_function + WIRE_V8_FUNCTIONS;
}

/* Returns true for the key "name". */
static bool is_name(const struct v8 *v, uint64_t key)
{
	return v8_is_pointer(key) && v8_get(v, key, WIRE_V8_NAME) >> 32 == 4 &&
	       v8_u32(v, key - 1 + (uint32_t)v->n.string_one_byte) == WIRE_V8_NAME_TEXT;
}

static uint64_t in_descriptors(const struct v8 *v, uint64_t function, uint64_t map)
{
	const uint64_t descriptors = v8_get(v, map, (uint32_t)v->n.map_descriptors);
	const uint32_t at = WIRE_V8_DESCRIPTORS + WIRE_V8_NAMED * WIRE_V8_PROPERTY;
	const uint32_t first = v8_u32(v, map - 1 + (uint32_t)v->n.map_first) & 0xff;
	const uint32_t words = v8_u32(v, map - 1 + (uint32_t)v->n.map_words) & 0xff;
	const uint32_t inside = words > first ? words - first : 0;
	uint32_t details, index;

	if (!is_name(v, v8_get(v, descriptors, at)))
		return 0;
	details = (uint32_t)(v8_get(v, descriptors, at + 8) >> 32);
	if (details & WIRE_V8_ACCESSOR)
		return 0;
	if (details & WIRE_V8_IN_DESCRIPTOR)
		return v8_get(v, descriptors, at + 16);
	index = details >> WIRE_V8_INDEX_SHIFT & WIRE_V8_OWN_MASK;
	if (index < inside)
		return v8_get(v, function, (first + index) * 8);
	return v8_get(v, v8_get(v, function, (uint32_t)v->n.object_properties),
		      (uint32_t)v->n.array_data + (index - inside) * 8);
}

static uint64_t in_dictionary(const struct v8 *v, uint64_t dictionary)
{
	const uint32_t prefix = WIRE_V8_DICTIONARY + (uint32_t)v->n.names_prefix;
	const uint64_t words = v8_get(v, dictionary, (uint32_t)v->n.array_length) >> 32;

	for (uint32_t i = 0; i < WIRE_V8_ENTRIES_MAX && prefix + i * 3 + 3 <= words; i++) {
		const uint32_t at = (uint32_t)v->n.array_data + prefix * 8 + i * WIRE_V8_PROPERTY;

		if (is_name(v, v8_get(v, dictionary, at)))
			return v8_get(v, dictionary, at + 8);
	}
	return 0;
}

static bool is_string(const struct v8 *v, int32_t type)
{
	return type >= 0 && type < v->n.type_no_string;
}

/* The pieces of a string that are still to be read, and what stands for those before. */
struct pieces {
	uint64_t left[WIRE_V8_PIECES];
	uint32_t n;
	uint64_t number;
};

/* Reads the next piece. Returns false when it cannot be read, or is of a rare kind. */
static bool next_piece(struct v8 *v, struct pieces *p)
{
	const struct v8_numbers *n = &v->n;
	uint64_t string = p->left[--p->n], characters[WIRE_V8_TEXT_WORDS] = { 0 };
	const int32_t type = v8_type(v, &string);
	const uint64_t word = v8_get(v, string, WIRE_V8_NAME);
	const uint32_t length = (uint32_t)(word >> 32);

	if (!is_string(v, type))
		return false;
	if ((word & WIRE_V8_HASH_FORM) == WIRE_V8_HASH_WHOLE) {
		p->number = wire_language_v8_piece(p->number, word);
		return true;
	}
	if ((type & n->string_form_mask) == n->string_cons) {
		if (p->n + 2 > WIRE_V8_PIECES)
			return false;
		p->left[p->n++] = v8_get(v, string, (uint32_t)n->string_second);
		p->left[p->n++] = v8_get(v, string, (uint32_t)n->string_first);
		return true;
	}
	if ((type & (n->string_form_mask | n->string_width_mask)) !=
		    (n->string_sequential | n->string_is_one_byte) ||
	    length > sizeof(characters) ||
	    space_read_some(v->runtime.space, string - 1 + (uint32_t)n->string_one_byte, characters,
			    length) != length)
		return false;
	p->number = wire_language_v8_text(p->number, length, characters);
	return true;
}

static uint64_t text_number(struct v8 *v, uint64_t string)
{
	struct pieces p = { .left = { string }, .n = 1, .number = 1 };

	for (uint32_t i = 0; p.n && i < WIRE_V8_STEPS; i++)
		if (!next_piece(v, &p))
			return 0;
	return p.n ? 0 : p.number;
}

uint64_t v8_own_name(struct v8 *v, uint64_t function, uint64_t *ret_string)
{
	const struct v8_numbers *n = &v->n;
	uint64_t map, string;
	uint32_t bits;

	if (n->map_dictionary <= 0 || n->map_dictionary > 31 || !v8_is_function(v, &function))
		return 0;
	map = v8_get(v, function, 0);
	bits = v8_u32(v, map - 1 + (uint32_t)n->map_bits3);
	if (bits >> n->map_dictionary & 1)
		string = in_dictionary(v, v8_get(v, function, (uint32_t)n->object_properties));
	else if ((bits >> WIRE_V8_OWN_SHIFT & WIRE_V8_OWN_MASK) > WIRE_V8_NAMED)
		string = in_descriptors(v, function, map);
	else
		return 0;
	if (!is_string(v, v8_type(v, &string)))
		return 0;
	*ret_string = string;
	return text_number(v, string);
}
