/* Makes a process's memory with a heap of V8 12.4 in it for tests: one page of a few Maps and
 * objects, in the parts of heap_memory.h. */
#ifndef DESCRY_TEST_V8_HEAP_MEMORY_H
#define DESCRY_TEST_V8_HEAP_MEMORY_H

#include "heap_memory.h"
#include "memory/heaplive/v8_heap.h"

enum {
	VH_PAGE = HM_MAPPED,
	VH_START = VH_PAGE + 0x100,
	VH_END = VH_PAGE + HM_SIZE,
	VH_HEAP = HM_VAR + 0x400,
	VH_FREE = VH_HEAP + 0x100, /* {start, top, limit} */
	/* Maps, 72 bytes each */
	VH_META = 0,
	VH_STRING,
	VH_ARRAY,
	VH_SHARED,
	VH_FUNCTION,
	VH_NODE,
	VH_NAMED, /* a Map that a transition made of VH_NODE's */
	VH_DESCRIPTORS,
	VH_FILLER,
	VH_FREE_SPACE,
	VH_WEAK_REF,
	VH_TABLE, /* EphemeronHashTable */
	VH_DICTIONARY,
	VH_SYMBOL,
	VH_PROPERTIES,
	VH_MAPS,
	/* objects */
	VH_NAME = VH_START + VH_MAPS * 72, /* "Node" */
	VH_NAME_B = VH_NAME + 24,          /* "next" */
	VH_SFI = VH_NAME_B + 24,
	VH_MAKER = VH_SFI + 72,
	VH_NODE_NAMES = VH_MAKER + 64, /* a DescriptorArray of two */
	VH_A = VH_NODE_NAMES + 24 + 48,
	VH_B = VH_A + 40,
	VH_ITEMS = VH_B + 40, /* an array of 3 */
	VH_WEAK = VH_ITEMS + 40,
	VH_EPHEMERON = VH_WEAK + 32,         /* of one key */
	VH_OUTSIDE = VH_EPHEMERON + 16 + 40, /* a PropertyArray of 2 */
	VH_GAP = VH_OUTSIDE + 32,
	VH_C = VH_GAP + 0x40,      /* behind free space */
	VH_TOP = VH_C + 40,        /* of the part that is being filled */
	VH_LIMIT = VH_TOP + 0x100, /* zeros up to here */
	VH_LAST = VH_LIMIT,        /* a node */
	VH_REST = VH_LAST + 40,    /* free space */
};

static inline uint64_t vh_map(uint32_t i)
{
	return VH_START + i * 72ull + V8_TAG;
}

static inline uint64_t vh_small(uint32_t n)
{
	return (uint64_t)n << 32;
}

static inline void vh_put_map(struct heap_memory *m, uint32_t i, uint32_t type, uint32_t words,
			      uint32_t first)
{
	const uint64_t at = VH_START + i * 72ull;

	heap_memory_put(m, at, vh_map(VH_META));
	heap_memory_put(m, at + 8, words | first << 8 | (uint64_t)type << 32 | 1ull << 56);
}

static inline void vh_object(struct heap_memory *m, uint64_t addr, uint32_t map, uint64_t a,
			     uint64_t b, uint64_t c, uint64_t d)
{
	heap_memory_put(m, addr, vh_map(map));
	heap_memory_put(m, addr + 8, a);
	heap_memory_put(m, addr + 16, b);
	heap_memory_put(m, addr + 24, c);
	heap_memory_put(m, addr + 32, d);
}

static inline void vh_string(struct heap_memory *m, uint64_t addr, const char *text)
{
	heap_memory_put(m, addr, vh_map(VH_STRING));
	heap_memory_put(m, addr + 8, vh_small((uint32_t)strlen(text)));
	memcpy(heap_memory_at(m, addr + 16, 8), text, strlen(text));
}

static inline void vh_space(struct heap_memory *m, uint64_t addr, uint64_t n)
{
	heap_memory_put(m, addr, vh_map(VH_FREE_SPACE));
	heap_memory_put(m, addr + 8, vh_small((uint32_t)n));
}

/* Nodes a -> b, and in a's fields outside it the array, which has c; a weak reference to b; a table
 * with b's value, the last node; a is on the stack. */
static inline void vh_make(struct heap_memory *m)
{
	static const uint64_t header[] = { 4, VH_PAGE, HM_SIZE, VH_HEAP, VH_START, VH_END };

	heap_memory_init(m);
	for (uint32_t i = 0; i < ARRAY_SIZE(header); i++)
		heap_memory_put(m, VH_PAGE + i * 8ull, header[i]);
	vh_put_map(m, VH_META, 264, 9, 0);
	vh_put_map(m, VH_STRING, 8, 0, 0);
	vh_put_map(m, VH_ARRAY, 174, 0, 0);
	vh_put_map(m, VH_SHARED, 274, 9, 0);
	vh_put_map(m, VH_FUNCTION, 2066, 8, 8);
	vh_put_map(m, VH_NODE, 1057, 5, 3);
	vh_put_map(m, VH_NAMED, 1057, 5, 3);
	vh_put_map(m, VH_DESCRIPTORS, 241, 0, 0);
	vh_put_map(m, VH_FILLER, 259, 1, 0);
	vh_put_map(m, VH_FREE_SPACE, 260, 0, 0);
	vh_put_map(m, VH_WEAK_REF, 2153, 4, 4);
	vh_put_map(m, VH_TABLE, 176, 0, 0);
	vh_put_map(m, VH_DICTIONARY, 178, 0, 0);
	vh_put_map(m, VH_SYMBOL, 128, 3, 0);
	vh_put_map(m, VH_PROPERTIES, 269, 0, 0);
	heap_memory_put(m, vh_map(VH_NODE) - 1 + 32, VH_MAKER + 1);
	heap_memory_put(m, vh_map(VH_NAMED) - 1 + 32, vh_map(VH_NODE));
	heap_memory_put(m, vh_map(VH_NAMED) - 1 + 16, 2 << 10);
	heap_memory_put(m, vh_map(VH_NAMED) - 1 + 40, VH_NODE_NAMES + 1);
	vh_string(m, VH_NAME, "Node");
	vh_string(m, VH_NAME_B, "next");
	vh_object(m, VH_SFI, VH_SHARED, 0, VH_NAME + 1, 0, 0);
	vh_object(m, VH_MAKER, VH_FUNCTION, 0, 0, 0, VH_SFI + 1);
	heap_memory_put(m, VH_NODE_NAMES, vh_map(VH_DESCRIPTORS));
	heap_memory_put(m, VH_NODE_NAMES + 8, 2 | 2 << 16);
	heap_memory_put(m, VH_NODE_NAMES + 24, VH_NAME_B + 1); /* field 0 */
	heap_memory_put(m, VH_NODE_NAMES + 48, VH_NAME + 1);   /* field 2, outside */
	heap_memory_put(m, VH_NODE_NAMES + 56, vh_small(2 << 19));
	vh_object(m, VH_A, VH_NAMED, VH_OUTSIDE + 1, 0, VH_B + 1, 0);
	vh_object(m, VH_B, VH_NODE, 0, 0, 0, 0);
	vh_object(m, VH_ITEMS, VH_ARRAY, vh_small(3), 0, VH_C + 1, 0);
	vh_object(m, VH_WEAK, VH_WEAK_REF, 0, 0, VH_B + 1, 0);
	vh_object(m, VH_EPHEMERON, VH_TABLE, vh_small(5), vh_small(1), 0, vh_small(1));
	heap_memory_put(m, VH_EPHEMERON + 40, VH_B + 1);
	heap_memory_put(m, VH_EPHEMERON + 48, VH_LAST + 1);
	vh_object(m, VH_OUTSIDE, VH_PROPERTIES, vh_small(2), VH_ITEMS + 1, 0, 0);
	vh_space(m, VH_GAP, VH_C - VH_GAP);
	vh_object(m, VH_C, VH_NODE, 0, 0, 0, 0);
	vh_object(m, VH_LAST, VH_NODE, 0, 0, 0, 0);
	vh_space(m, VH_REST, VH_END - VH_REST);
	heap_memory_put(m, VH_FREE, VH_START);
	heap_memory_put(m, VH_FREE + 8, VH_TOP);
	heap_memory_put(m, VH_FREE + 16, VH_LIMIT);
	heap_memory_put(m, HM_STACK + 0x1800, VH_A + 1);
}

static inline void vh_reader(struct v8_reader *x, struct v8 *v, const struct memory_copy *c,
			     struct space *s, struct graph *g)
{
	*v = (struct v8){ .runtime.space = s, .budget = 1 << 20, .work = 1 << 20 };
	v->version = v8_version_find(12, 4);
	arena_init(&v->names);
	arena_init(&v->passing);
	v->n = (struct v8_numbers){
		.map_type = 12,
		.map_words = 8,
		.map_first = 9,
		.map_bits2 = 15,
		.map_bits3 = 16,
		.map_prototype = 24,
		.map_constructor = 32,
		.map_descriptors = 40,
		.map_dictionary = 21,
		.names_prefix = 3,
		.object_properties = 8,
		.object_elements = 16,
		.function_shared = 32,
		.function_context = 40,
		.symbol_name = 16,
		.type_map = 264,
		.type_code = 206,
		.type_stream = 210,
		.type_bytecodes = 205,
		.type_interpreter_data = 207,
		.type_function = 2066,
		.type_shared = 274,
		.type_scope = 272,
		.type_script = 167,
		.type_debug_info = 154,
		.type_fixed_array = 174,
		.type_buffer = 2062,
		.buffer_store = 48,
		.buffer_bytes = 32,
		.type_no_string = 128,
		.array_length = 8,
		.array_data = 16,
		.shared_name = 16,
		.shared_flags = 40,
		.shared_script = 32,
		.bytecodes_data = 64,
		.string_length = 12,
		.string_one_byte = 16,
		.string_two_bytes = 16,
		.string_first = 16,
		.string_second = 24,
		.string_parent = 16,
		.string_offset = 24,
		.string_actual = 16,
		.string_resource = 16,
		.string_form_mask = 7,
		.string_cons = 1,
		.string_external = 2,
		.string_sliced = 3,
		.string_thin = 5,
		.string_width_mask = 8,
		.string_is_one_byte = 8,
		.scope_locals = 2,
		.scope_first = 3,
	};
	*x = (struct v8_reader){ .copy = c, .v8 = v, .graph = g };
}

static inline void vh_reader_fini(struct v8_reader *x)
{
	arena_fini(&x->v8->names);
	arena_fini(&x->v8->passing);
	hash_fini(&x->v8->types);
	v8_reader_fini(x);
}

#endif
