/* The versions of V8 whose heaps are known, and what their instance types say about an object. */
#include "memory/heaplive/v8_heap.h"

enum {
	/* types that have the same number in all versions */
	STRINGS_END = 128,
	BIG_INT = 129,
	HEAP_NUMBER = 130,
	RECEIVERS = 1040,      /* JavaScript objects are from here on, and: */
	SPECIAL_RECEIVERS = 4, /* as many before it, from the global object on */
	CONTEXTS = 10,
	NATIVE_CONTEXT = 7, /* among the contexts */
	EPHEMERON = 2,      /* among the arrays */
	CELLS = 3,
	NAMES = 4,
	GLOBAL = 1, /* among the special receivers */
	WORD = 8,
};

static const struct v8_heap_version heap_versions[] = {
	{ .major = 10,
	  .minor = 2,
	  .size = 0,
	  .flags = 1,
	  .heap = 2,
	  .area_start = 3,
	  .area_end = 4,
	  .owner = 8,
	  .large = 1 << 5,
	  .arrays = 179,
	  .arrays_end = 194,
	  .byte_array = 194,
	  .bytecodes = 195,
	  .doubles = 196,
	  .sloppy = 198,
	  .contexts = 207,
	  .descriptors = 233,
	  .weak_arrays = 237,
	  .weak_arrays_end = 239,
	  .weak_list = 264,
	  .embedder = 243,
	  .filler = 246,
	  .free_space = 247,
	  .free_unit = 1,
	  .properties = 254,
	  .feedback = 245,
	  .feedback_data = 48,
	  .stream = 240,
	  .map = 250,
	  .weak_cell = 265,
	  .weak_ref = 2140,
	  .function_template = 139,
	  .receivers = 268 },
	{ .major = 11,
	  .minor = 3,
	  .size = 0,
	  .flags = 1,
	  .heap = 2,
	  .area_start = 3,
	  .area_end = 4,
	  .owner = 8,
	  .large = 1 << 7,
	  .arrays = 175,
	  .arrays_end = 190,
	  .byte_array = 190,
	  .bytecodes = 191,
	  .doubles = 192,
	  .sloppy = 194,
	  .contexts = 205,
	  .descriptors = 236,
	  .weak_arrays = 240,
	  .weak_arrays_end = 242,
	  .weak_list = 274,
	  .embedder = 247,
	  .filler = 250,
	  .free_space = 251,
	  .free_unit = 1,
	  .properties = 259,
	  .feedback = 249,
	  .feedback_data = 56,
	  .stream = 252,
	  .map = 255,
	  .weak_cell = 275,
	  .weak_ref = 2151,
	  .function_template = 139,
	  .receivers = 278 },
	{ .major = 12,
	  .minor = 4,
	  .flags = 0,
	  .own = 1,
	  .size = 2,
	  .heap = 3,
	  .area_start = 4,
	  .area_end = 5,
	  .owner = 9,
	  .large = 1 << 7,
	  .arrays = 174,
	  .arrays_end = 186,
	  .byte_array = 186,
	  .external_pointers = 187,
	  .bytecodes = 205,
	  .doubles = 188,
	  .sloppy = 189,
	  .trusted_bytes = 212,
	  .more_arrays = { { 211, 16 },
			   { 213, 16 },
			   { 250, 24 },
			   { 252, 16 },
			   { 266, 32 },
			   { 271, 40 },
			   { 273, 32 } },
	  .contexts = 190,
	  .descriptors = 241,
	  .weak_arrays = 247,
	  .weak_arrays_end = 249,
	  .weak_list = 287,
	  .embedder = 256,
	  .filler = 259,
	  .free_space = 260,
	  .free_unit = 1,
	  .properties = 269,
	  .feedback = 258,
	  .feedback_data = 56,
	  .stream = 210,
	  .stream_size = 24,
	  .map = 264,
	  .weak_cell = 288,
	  .weak_ref = 2153,
	  .function_template = 245,
	  .receivers = 291 },
	{ .major = 13,
	  .minor = 6,
	  .apart = true,
	  .flags = 0,
	  .own = 1,
	  .size = 6,
	  .area_end = 7,
	  .heap = 8,
	  .area_start = 9,
	  .large = 1 << 10,
	  .arrays = 205,
	  .arrays_end = 217,
	  .byte_array = 217,
	  .bytecodes = 186,
	  .doubles = 218,
	  .sloppy = 219,
	  .trusted_bytes = 196,
	  .more_arrays = { { 193, 16 },
			   { 197, 16 },
			   { 259, 24 },
			   { 261, 16 },
			   { 274, 32 },
			   { 279, 40 },
			   { 281, 32 } },
	  .more_weak = { 194, 199 },
	  .contexts = 220,
	  .descriptors = 252,
	  .weak_arrays = 256,
	  .weak_arrays_end = 258,
	  .weak_list = 295,
	  .embedder = 264,
	  .filler = 267,
	  .free_space = 268,
	  .free_unit = WORD,
	  .properties = 277,
	  .feedback = 266,
	  .feedback_data = 48,
	  .stream = 192,
	  .stream_size = 24,
	  .map = 272,
	  .weak_cell = 296,
	  .weak_ref = 2157,
	  .function_template = 247,
	  .receivers = 299 },
};

const struct v8_heap_version *v8_heap_version_find(int32_t major, int32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(heap_versions); i++)
		if (heap_versions[i].major == major && heap_versions[i].minor == minor)
			return &heap_versions[i];
	return NULL;
}

bool v8_is_receiver(const struct v8_reader *x, uint32_t type)
{
	const uint32_t first = x->version->receivers;

	return type >= RECEIVERS || (type >= first && type < first + SPECIAL_RECEIVERS);
}

/* A rule for types from the first on, before the end. */
struct rule {
	uint32_t type, end;
	uint32_t size;
	enum v8_sizing sizing;
	enum v8_holds holds;
	enum v8_group group;
};

static void rule_use(struct v8_map *m, const struct rule *r)
{
	m->sizing = (uint8_t)r->sizing;
	m->holds = (uint8_t)r->holds;
	m->group = (uint8_t)r->group;
	m->size = r->size;
}

static void string_learn(const struct v8_reader *x, struct v8_map *m, uint32_t words)
{
	const struct v8_numbers *n = &x->v8->n;
	const int32_t form = m->type & n->string_form_mask;
	const bool pairs = (m->type & n->string_width_mask) != n->string_is_one_byte;

	m->group = form == n->string_cons     ? V8_GROUP_CONCATENATED
		   : form == n->string_sliced ? V8_GROUP_SLICED
					      : V8_GROUP_STRING;
	if (words) {
		m->holds = form == n->string_external ? V8_NOTHING : V8_STRING_PARTS;
		return;
	}
	m->holds = V8_NOTHING;
	m->size = (uint32_t)(pairs ? n->string_two_bytes : n->string_one_byte);
	m->sizing = pairs ? V8_STRING_PAIRS : V8_STRING_BYTES;
}

static void receiver_learn(const struct v8_reader *x, struct v8_map *m)
{
	const struct v8_heap_version *v = x->version;

	m->group = m->type == v->receivers + GLOBAL ? V8_GROUP_GLOBAL : V8_GROUP_OBJECT;
	m->closure = m->type >= x->v8->n.type_function &&
		     m->type <= x->v8->n.type_function + V8_FUNCTIONS;
	m->holds = m->type == v->weak_ref ? V8_WEAKLY : V8_OBJECT;
}

/* Looks in the rules for the type. Returns false when there is none. */
static bool rules_learn(const struct v8_reader *x, struct v8_map *m)
{
	const struct v8_heap_version *v = x->version;
	const struct v8_numbers *n = &x->v8->n;
	const uint32_t code = (uint32_t)n->type_code, scope = (uint32_t)n->type_scope;
	const uint32_t shared = (uint32_t)n->type_shared, script = (uint32_t)n->type_script;
	const struct rule rules[] = {
		{ v->arrays + EPHEMERON, v->arrays + EPHEMERON + 1, 16, V8_SMALL_WORDS,
		  V8_EPHEMERON, V8_GROUP_ARRAY },
		{ v->arrays + CELLS, v->arrays + CELLS + 1, 16, V8_SMALL_WORDS, V8_CELLS,
		  V8_GROUP_ARRAY },
		{ v->arrays + NAMES, v->arrays + NAMES + 1, 16, V8_SMALL_WORDS, V8_NAMES,
		  V8_GROUP_ARRAY },
		{ v->arrays, v->arrays_end, 16, V8_SMALL_WORDS, V8_ITEMS, V8_GROUP_ARRAY },
		{ v->byte_array, v->byte_array + 1, 16, V8_SMALL_BYTES, V8_NOTHING,
		  V8_GROUP_ARRAY },
		{ v->trusted_bytes, v->trusted_bytes + 1, 16, V8_SMALL_BYTES, V8_NOTHING,
		  V8_GROUP_ARRAY },
		{ v->external_pointers, v->external_pointers + 1, 16, V8_SMALL_WORDS, V8_NOTHING,
		  V8_GROUP_ARRAY },
		{ v->doubles, v->doubles + 1, 16, V8_SMALL_WORDS, V8_NOTHING, V8_GROUP_ARRAY },
		{ v->sloppy, v->sloppy + 1, 32, V8_SMALL_WORDS, V8_WORDS, V8_GROUP_ARRAY },
		{ v->bytecodes, v->bytecodes + 1, (uint32_t)n->bytecodes_data, V8_SMALL_BYTES,
		  V8_HEAD_WORDS, V8_GROUP_CODE },
		{ v->contexts + NATIVE_CONTEXT, v->contexts + NATIVE_CONTEXT + 1, 24,
		  V8_SMALL_WORDS, V8_CONTEXT, V8_GROUP_NATIVE_CONTEXT },
		{ v->contexts, v->contexts + CONTEXTS, 16, V8_SMALL_WORDS, V8_CONTEXT,
		  V8_GROUP_CONTEXT },
		{ v->descriptors, v->descriptors + 2, 24, V8_DESCRIPTORS, V8_WORDS,
		  V8_GROUP_SHAPE },
		{ v->weak_arrays, v->weak_arrays_end, 16, V8_SMALL_WORDS, V8_ITEMS,
		  V8_GROUP_ARRAY },
		{ v->more_weak[0], v->more_weak[0] + 1, 16, V8_SMALL_WORDS, V8_ITEMS,
		  V8_GROUP_ARRAY },
		{ v->more_weak[1], v->more_weak[1] + 1, 16, V8_SMALL_WORDS, V8_ITEMS,
		  V8_GROUP_ARRAY },
		{ v->weak_list, v->weak_list + 1, 24, V8_SMALL_WORDS, V8_ITEMS, V8_GROUP_ARRAY },
		{ v->embedder, v->embedder + 1, 16, V8_SMALL_WORDS, V8_WORDS, V8_GROUP_ARRAY },
		{ v->filler, v->filler + 1, WORD, V8_SEARCHED, V8_IS_FILLER, V8_GROUP_SYSTEM },
		{ v->free_space, v->free_space + 1, v->free_unit, V8_GIVEN, V8_IS_FILLER,
		  V8_GROUP_SYSTEM },
		{ v->properties, v->properties + 1, 16, V8_PROPERTIES, V8_ITEMS, V8_GROUP_ARRAY },
		{ v->feedback, v->feedback + 1, v->feedback_data, V8_SLOTS, V8_WORDS,
		  V8_GROUP_CODE },
		{ BIG_INT, BIG_INT + 1, 16, V8_DIGITS, V8_NOTHING, V8_GROUP_BIG_INT },
		{ v->stream, v->stream + 1, x->v8->version->stream_start,
		  v->stream == code ? V8_CODE : V8_STREAM, V8_HEAD_WORDS, V8_GROUP_CODE },
		{ HEAP_NUMBER, HEAP_NUMBER + 1, 16, V8_SEARCHED, V8_NOTHING, V8_GROUP_NUMBER },
		{ v->weak_cell, v->weak_cell + 1, 16, V8_SEARCHED, V8_WEAKLY, V8_GROUP_SYSTEM },
		{ v->map, v->map + 1, V8_MAP_SIZE, V8_SEARCHED, V8_WORDS, V8_GROUP_SHAPE },
		{ code, code + 1, 16, V8_SEARCHED, V8_WORDS, V8_GROUP_CODE },
		{ scope, scope + 1, 32, V8_SEARCHED, V8_WORDS, V8_GROUP_CODE },
		{ shared, shared + 1, 32, V8_SEARCHED, V8_WORDS, V8_GROUP_CODE },
		{ script, script + 1, 32, V8_SEARCHED, V8_WORDS, V8_GROUP_CODE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].type && m->type >= rules[i].type && m->type < rules[i].end) {
			rule_use(m, &rules[i]);
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(v->more_arrays); i++)
		if (v->more_arrays[i][0] && m->type == v->more_arrays[i][0]) {
			rule_use(m, &(struct rule){ 0, 0, v->more_arrays[i][1], V8_SMALL_WORDS,
						    V8_ITEMS, V8_GROUP_ARRAY });
			return true;
		}
	return false;
}

void v8_type_learn(const struct v8_reader *x, struct v8_map *m, uint32_t words)
{
	if (m->type < STRINGS_END) {
		string_learn(x, m, words);
	} else if (v8_is_receiver(x, m->type)) {
		receiver_learn(x, m);
	} else if (!rules_learn(x, m)) {
		m->sizing = V8_SEARCHED;
		m->size = WORD;
		m->holds = V8_WORDS;
		m->group = m->type == STRINGS_END ? V8_GROUP_SYMBOL : V8_GROUP_SYSTEM;
	}
	if (words) {
		m->sizing = V8_FIXED;
		m->size = words * WORD;
	}
}
