/* A process's memory with structures of V8 in it, as tests make it: two functions of a script, the
 * first one's bytecodes, baseline and optimized code of it, and a stack. The layout is that of V8
 * 13.6. */
#ifndef DESCRY_TEST_V8_MEMORY_H
#define DESCRY_TEST_V8_MEMORY_H

#include "made_memory.h"
#include "program/runtime/v8/v8.h"

enum {
	V8_BASE = MADE_BASE,
	V8_BYTES = 0x10000,
	/* types of objects; a type's Map is at V8_MAPS + 0x40 * type */
	V8_MAP = 1,
	V8_STRING = 8, /* of one byte a character, in one piece */
	V8_STRING_CONS = 9,
	V8_STRING_THIN = 13,
	V8_STRING_SLICED = 11,
	V8_NO_STRING = 16,
	V8_CODE,
	V8_STREAM,
	V8_BYTECODES,
	V8_FUNCTION,
	V8_SHARED = V8_FUNCTION + 18,
	V8_SCOPE,
	V8_SCRIPT,
	V8_ARRAY,
	V8_DATA,
	V8_DEBUG,
	/* addresses */
	V8_MAPS = V8_BASE,
	V8_SIZES = V8_BASE + 0x1000, /* of bytecodes */
	V8_TABLE = V8_BASE + 0x1400, /* the interpreter's table of bytecode handlers */
	V8_JS_FUNCTION = V8_BASE + 0x2000,
	V8_SFI = V8_BASE + 0x2100,
	V8_SFI_INLINED = V8_BASE + 0x2200,
	V8_NAME = V8_BASE + 0x2300,
	V8_SCOPE_INFO = V8_BASE + 0x2400,
	V8_A_SCRIPT = V8_BASE + 0x2500,
	V8_SOURCE = V8_BASE + 0x2600,
	V8_FILE = V8_BASE + 0x2700,
	V8_CODES = V8_BASE + 0x2800, /* the bytecodes */
	V8_POSITIONS = V8_BASE + 0x2900,
	V8_PLACES = V8_BASE + 0x2a00, /* of the bytecodes in baseline code */
	V8_A_CODE = V8_BASE + 0x2b00,
	V8_DEOPT = V8_BASE + 0x2c00,
	V8_LITERALS = V8_BASE + 0x2d00,
	V8_TRANSLATIONS = V8_BASE + 0x2e00,
	V8_PROPERTIES = V8_BASE + 0x3000, /* descriptors, or a dictionary */
	V8_KEY = V8_BASE + 0x3200,        /* "name" */
	V8_OWN = V8_BASE + 0x3300,        /* strings */
	V8_JS_INLINED = V8_BASE + 0x3600, /* a function of V8_SFI_INLINED */
	V8_BUILTINS = V8_BASE + 0x4000,
	V8_MADE = V8_BASE + 0x6000, /* code that V8 has made */
	V8_INSTRUCTIONS = V8_MADE + 0x100,
	V8_SIZE = 0x100,
	V8_MADE_END = V8_BASE + 0x8000,
	V8_STACK = V8_BASE + 0x9000,
	V8_BASELINE = 10,
};

struct v8_memory {
	struct made_memory made;
	struct v8 v8;
};

static inline void v8_memory_numbers(struct v8_numbers *n)
{
	*n = (struct v8_numbers){
		.map_words = 8,
		.map_first = 9,
		.map_type = 12,
		.map_bits3 = 16,
		.map_descriptors = 40,
		.map_dictionary = 21,
		.names_prefix = 2,
		.object_properties = 8,
		.type_map = V8_MAP,
		.type_code = V8_CODE,
		.type_stream = V8_STREAM,
		.type_bytecodes = V8_BYTECODES,
		.type_interpreter_data = V8_DATA,
		.type_function = V8_FUNCTION,
		.type_shared = V8_SHARED,
		.type_scope = V8_SCOPE,
		.type_script = V8_SCRIPT,
		.type_debug_info = V8_DEBUG,
		.type_fixed_array = V8_ARRAY,
		.type_no_string = V8_NO_STRING,
		.array_length = 8,
		.array_data = 16,
		.function_shared = 32,
		.shared_name = 24,
		.shared_script = 40,
		.script_source = 8,
		.script_name = 16,
		.script_ends = 56,
		.shared_flags = 56,
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
		.scope_first = 5,
		.frame_context = -8,
		.frame_function = -16,
		.frame_bytecodes = -32,
		.frame_place = -40,
		.frame_builtin_exit = 27,
		.code_kind_mask = 15,
		.code_baseline = V8_BASELINE,
	};
}

/* bytes and n are the caller's to fill. */
static inline void v8_memory_init(struct v8_memory *m)
{
	memset(m, 0, sizeof(*m));
	made_memory_init(&m->made);
	m->made.thread.tid = 4711;
	m->v8.runtime.space = &m->made.space;
	m->v8.budget = 1 << 20;
	m->v8.work = 1 << 22;
	m->v8.version = v8_version_find(13, 6);
	m->v8.sizes = V8_SIZES;
	m->v8.ranges_read = true;
	vec_push(&m->v8.ranges, (struct v8_range){ V8_BUILTINS, V8_MADE, false });
	vec_push(&m->v8.ranges, (struct v8_range){ V8_MADE, V8_MADE_END, true });
	v8_memory_numbers(&m->v8.n);
	arena_init(&m->v8.names);
	arena_init(&m->v8.passing);
}

static inline void v8_memory_fini(struct v8_memory *m)
{
	arena_fini(&m->v8.names);
	arena_fini(&m->v8.passing);
	hash_fini(&m->v8.types);
	hash_fini(&m->v8.functions);
	hash_fini(&m->v8.scripts);
	hash_fini(&m->v8.doubtful);
	hash_fini(&m->v8.arrays);
	hash_fini(&m->v8.lines);
	vec_fini(&m->v8.ranges);
	vec_fini(&m->v8.codes);
}

/* Makes a word a pointer to an object of a type. */
static inline void v8_memory_object(struct v8_memory *m, uint64_t addr, uint32_t type)
{
	made_memory_put(&m->made, addr, V8_MAPS + 0x40ull * type + 1, 8);
}

static inline void v8_memory_string(struct v8_memory *m, uint64_t addr, const char *s)
{
	v8_memory_object(m, addr, V8_STRING);
	made_memory_put(&m->made, addr + 12, strlen(s), 4);
	made_memory_bytes(&m->made, addr + 16, s, strlen(s));
}

/* An array of bytes, or of words. */
static inline void v8_memory_array(struct v8_memory *m, uint64_t addr, const void *p, size_t n,
				   size_t size)
{
	v8_memory_object(m, addr, V8_ARRAY);
	made_memory_put(&m->made, addr + 8, (uint64_t)n << 32, 8);
	made_memory_bytes(&m->made, addr + 16, p, n * size);
}

#endif
