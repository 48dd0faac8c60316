/* V8, the JavaScript engine of Node.js: finds the frames of its code, and the functions in them.
 *
 * A JavaScript function has a native frame: of the interpreter, of the code that a compiler made of
 * it, or of a built-in function of V8. rbp links the frames. An optimized function can have others
 * inlined.
 *
 *	rbp + 8    return address
 *	rbp        rbp of the caller
 *	rbp - 8    the function's context (tagged: a JavaScript frame), else the kind of frame
 *	rbp - 16   the function
 *	rbp - 32   its bytecodes, and
 *	rbp - 40   the place in them: in frames of the interpreter and of baseline code
 *
 * The engine publishes numbers of its layout for debuggers (v8dbg_...). versions.c has the numbers
 * that are not published, for the known versions of Node.js.
 */
#ifndef DESCRY_PROGRAM_RUNTIME_V8_V8_H
#define DESCRY_PROGRAM_RUNTIME_V8_V8_H

#include "base/hash.h"
#include "program/object/object.h"
#include "program/runtime/runtime.h"

/* X(name, required, symbol, other symbols): published numbers, after v8dbg_. Some names end with
 * the member's type, which differs by version. */
#define V8_NUMBERS(X) \
	X(tagged_size, 1, "TaggedSize", "", "") \
	X(smi_shift, 1, "SmiShiftSize", "", "") \
	X(map_type, 1, "class_Map__instance_type__uint16_t", "", "") \
	X(type_map, 1, "type_Map__MAP_TYPE", "", "") \
	X(map_words, 0, "class_Map__instance_size_in_words__char", "", "") \
	X(map_first, 0, \
	  "class_Map__inobject_properties_start_or_constructor_function_index__char", "", "") \
	X(map_bits2, 0, "class_Map__bit_field2__char", "", "") \
	X(map_bits3, 0, "class_Map__bit_field3__int", "", "") \
	X(map_prototype, 0, "class_Map__prototype__Object", "", "") \
	X(map_constructor, 0, "class_Map__constructor_or_back_pointer__Object", \
	  "class_Map__constructor_or_back_pointer__Tagged_Object_", "") \
	X(map_descriptors, 0, "class_Map__instance_descriptors_offset", "", "") \
	X(map_dictionary, 0, "bit_field3_is_dictionary_map_shift", "", "") \
	X(names_prefix, 0, "namedictionaryshape_prefix_size", "", "") \
	X(object_properties, 0, "class_JSReceiver__raw_properties_or_hash__Object", \
	  "class_JSReceiver__raw_properties_or_hash__Tagged_Object_", "") \
	X(object_elements, 0, "class_JSObject__elements__Object", "", "") \
	X(function_context, 0, "class_JSFunction__context__Context", \
	  "class_JSFunction__context__Tagged_Context_", "") \
	X(buffer_store, 0, "class_JSArrayBuffer__backing_store__uintptr_t", "", "") \
	X(buffer_bytes, 0, "class_JSArrayBuffer__byte_length__size_t", "", "") \
	X(type_buffer, 0, "type_JSArrayBuffer__JS_ARRAY_BUFFER_TYPE", "", "") \
	X(symbol_name, 0, "class_Symbol__name__Object", "", "") \
	X(type_code, 1, "type_Code__CODE_TYPE", "", "") \
	X(type_stream, 0, "type_InstructionStream__INSTRUCTION_STREAM_TYPE", "", "") \
	X(type_bytecodes, 1, "type_BytecodeArray__BYTECODE_ARRAY_TYPE", "", "") \
	X(type_interpreter_data, 1, "type_InterpreterData__INTERPRETER_DATA_TYPE", "", "") \
	X(type_function, 1, "type_JSFunction__JS_FUNCTION_TYPE", "", "") \
	X(type_shared, 1, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", "", "") \
	X(type_scope, 1, "type_ScopeInfo__SCOPE_INFO_TYPE", "", "") \
	X(type_script, 1, "type_Script__SCRIPT_TYPE", "", "") \
	X(type_debug_info, 1, "type_DebugInfo__DEBUG_INFO_TYPE", "", "") \
	X(type_fixed_array, 1, "type_FixedArray__FIXED_ARRAY_TYPE", "", "") \
	X(type_no_string, 1, "FirstNonstringType", "", "") \
	X(array_length, 1, "class_FixedArrayBase__length__SMI", "", "") \
	X(array_data, 1, "class_FixedArray__data__uintptr_t", "", "") \
	X(function_shared, 1, "class_JSFunction__shared__SharedFunctionInfo", "", "") \
	X(shared_name, 1, "class_SharedFunctionInfo__name_or_scope_info__Object", \
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_", \
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_") \
	X(shared_script, 1, "class_SharedFunctionInfo__script_or_debug_info__HeapObject", \
	  "class_SharedFunctionInfo__script__Tagged_HeapObject_", "") \
	X(script_source, 1, "class_Script__source__Object", "", "") \
	X(script_name, 1, "class_Script__name__Object", "", "") \
	X(script_ends, 1, "class_Script__line_ends__Object", "", "") \
	X(shared_flags, 1, "class_SharedFunctionInfo__flags__int", "", "") \
	X(bytecodes_data, 1, "class_BytecodeArray__data__uintptr_t", "", "") \
	X(string_length, 1, "class_String__length__int32_t", "", "") \
	X(string_one_byte, 1, "class_SeqOneByteString__chars__char", "", "") \
	X(string_two_bytes, 1, "class_SeqTwoByteString__chars__char", "", "") \
	X(string_first, 1, "class_ConsString__first__String", "", "") \
	X(string_second, 1, "class_ConsString__second__String", "", "") \
	X(string_parent, 1, "class_SlicedString__parent__String", "", "") \
	X(string_offset, 1, "class_SlicedString__offset__SMI", "", "") \
	X(string_actual, 1, "class_ThinString__actual__String", "", "") \
	X(string_resource, 1, "class_ExternalString__resource__Object", "", "") \
	X(string_form_mask, 1, "StringRepresentationMask", "", "") \
	X(string_sequential, 1, "SeqStringTag", "", "") \
	X(string_cons, 1, "ConsStringTag", "", "") \
	X(string_external, 1, "ExternalStringTag", "", "") \
	X(string_sliced, 1, "SlicedStringTag", "", "") \
	X(string_thin, 1, "ThinStringTag", "", "") \
	X(string_width_mask, 1, "StringEncodingMask", "", "") \
	X(string_is_one_byte, 1, "OneByteStringTag", "", "") \
	X(scope_locals, 1, "scopeinfo_idx_ncontextlocals", "", "") \
	X(scope_first, 1, "scopeinfo_idx_first_vars", "", "") \
	X(frame_context, 1, "off_fp_context_or_frame_type", "", "") \
	X(frame_function, 1, "off_fp_function", "", "") \
	X(frame_bytecodes, 1, "off_fp_bytecode_array", "", "") \
	X(frame_place, 1, "off_fp_bytecode_offset", "", "") \
	X(frame_builtin_exit, 1, "frametype_BuiltinExitFrame", "", "") \
	X(code_kind_mask, 1, "CodeKindFieldMask", "", "") \
	X(code_baseline, 1, "CodeKindBaseline", "", "")

struct v8_numbers {
#define X(name, ...) int32_t name;
	V8_NUMBERS(X)
#undef X
};

/* The facts about a version that are not published. */
struct v8_version {
	int32_t major, minor;
	const char *node;     /* the versions of Node.js with this V8 */
	uint32_t stream_code; /* InstructionStream: its Code; 0: the instructions are in the Code */
	uint32_t stream_start; /* offset of the instructions in it */
	uint32_t code_data;    /* Code: deoptimization data; bytecodes of baseline code */
	uint32_t code_places;  /* for baseline code: table of the bytecodes' places */
	uint32_t code_start;   /* address of the instructions; 0: they are in the Code */
	uint32_t code_flags, code_size;
	uint32_t bytecodes_positions; /* BytecodeArray: table of positions in the source */
	uint32_t shared_data;         /* SharedFunctionInfo: bytecodes, or code that has them */
	uint32_t safepoints;          /* offset of the length in a table of safepoints */
	uint32_t maglev; /* offset of the entries in a table of safepoints of Maglev's code */
	uint32_t deopt_literals, deopt_first; /* indexes in the deoptimization data */
	const char *operands; /* number of operands of each opcode of translations, as a digit */
	struct {
		uint8_t begin[2], frame[4], match; /* opcodes; frames of JavaScript */
		uint8_t interpreted;               /* of these, frames with bytecodes */
		uint8_t literal;                   /* opcode of a value in the literals */
		uint8_t begin_frames; /* index of the operand with the count of such frames */
		bool is_signed;       /* opcodes are written as signed numbers */
	} op;
	uint32_t opcodes; /* bytecodes: the length of each table of sizes */
};

/* Code that a compiler has made. */
struct v8_code {
	uint64_t start, end; /* instructions */
	uint64_t object;     /* the Code */
	uint32_t kind;
};

/* A script, and the ends of its lines. */
struct v8_script {
	const char *file; /* NULL: not known */
	int32_t line;     /* number of its first line, from 0 on */
	const uint32_t *ends;
	uint32_t n;
};

/* A function, read from its SharedFunctionInfo. A JSFunction may have another name. */
struct v8_function {
	uint64_t address;
	uint32_t pass; /* v8_pass() in which it was read */
	const char *name;
	const struct v8_script *script; /* NULL: built into V8 */
	uint64_t bytecodes;             /* 0: none */
	const uint8_t *positions;       /* a copy of the table; NULL: V8 has not made it */
	uint32_t npositions;
	/* The same without the name that only a JSFunction has; NULL: this is it. */
	const struct v8_function *plain;
};

/* What stays of an object when another takes its address. */
struct v8_key {
	uint64_t address, id;
};

/* A function and the place that it executes: a byte of its bytecodes, or one of these. */
struct v8_at {
	const struct v8_function *function;
	int32_t place;
};
enum {
	V8_NOWHERE = -2, /* not known */
	V8_ENTRY = -1,   /* in front of the first bytecode, as V8 numbers it */
};
enum { V8_INLINED_MAX = 256 };
/* Bytes of a table that are read without a charge to the budget `work`. */
enum { V8_FREE_TABLE = 1 << 14 };

struct v8_range {
	uint64_t start, end;
	bool made; /* code that V8 has made at run time */
};

struct v8 {
	struct runtime runtime; /* first */
	struct object *object;
	uint64_t bias;
	struct v8_numbers n;
	const struct v8_version *version;
	uint64_t blob, blob_size; /* built-in code: address in the file */
	uint64_t sizes;           /* address of the sizes of bytecodes; 0: not known */
	VEC(struct v8_range) ranges;
	bool ranges_read;
	struct arena names;
	struct hash functions; /* struct v8_key of a SharedFunctionInfo: struct v8_function * */
	struct hash scripts;   /* struct v8_key of a Script: struct v8_script * */
	struct hash doubtful;  /* id of a place: how often its tables could not be read */
	/* Facts that hold only until objects are moved: see v8_pass(). */
	struct arena passing;
	size_t passing_size; /* bytes in it and in codes, of the budget */
	uint32_t pass;
	struct hash types;  /* address of a Map: instance type + 1 */
	struct hash arrays; /* address of an array of bytes: the bytes read, in `passing` */
	struct hash lines;  /* struct v8_function *, place: line */
	VEC(struct v8_code) codes;
	size_t budget; /* bytes of names and tables that may still be read */
	uint64_t work; /* bytes that may still be searched */
};

/* --- versions.c --- */
/* Returns NULL when the version is not known. */
const struct v8_version *v8_version_find(int32_t major, int32_t minor);

/* --- v8.c --- */
/* Finds the built-in code. Its size is 0 until V8 begins. */
struct err *v8_builtins_find(struct v8 *v);

/* --- memory.c --- */
enum { V8_NO_TYPE = -1 };
bool v8_word(const struct v8 *v, uint64_t addr, uint64_t *ret);
/* Reads a number of 4 bytes. Returns 0 when it cannot be read. */
uint32_t v8_u32(const struct v8 *v, uint64_t addr);
/* Returns true when a word is a pointer to an object. */
bool v8_is_pointer(uint64_t word);
bool v8_small(uint64_t word, int32_t *ret);
/* Reads a member of an object. Returns 0 when it cannot be read. */
uint64_t v8_get(const struct v8 *v, uint64_t object, uint32_t at);
/* Returns the instance type of an object, from its Map, if that is a Map. Replaces an object that
 * the garbage collector has just moved by the new one. */
int32_t v8_type(struct v8 *v, uint64_t *object);
/* Reads a member that leads to an object of a type. Returns 0 when it does not. */
uint64_t v8_member(struct v8 *v, uint64_t object, uint32_t at, int32_t type);
bool v8_afford(struct v8 *v, size_t n);
/* Returns true when as much is left of the budget. Takes nothing. */
bool v8_has(struct v8 *v, size_t n);
/* Forgets what holds only until objects are moved, because the process has run. */
void v8_pass(struct v8 *v);
/* Returns the bytes of an array, which begin at an offset in it. They live until v8_pass(). NULL:
 * they cannot be read. */
const uint8_t *v8_bytes(struct v8 *v, uint64_t array, uint32_t at, uint32_t *ret_n);
/* Reads a number of seven bits a byte, the lowest first. Reads 0 behind the end. */
uint32_t v8_number(const uint8_t *p, uint32_t n, uint32_t *i);

/* --- strings.c --- */
/* The characters of a string, in one piece. */
struct v8_string {
	uint64_t address;
	uint32_t length;
	bool wide; /* two bytes a character */
};
bool v8_string_open(struct v8 *v, uint64_t object, struct v8_string *ret);
/* Returns true when the budgets still allow texts. */
bool v8_can_name(struct v8 *v);
/* Returns the string's text in UTF-8, cut if it is long, or NULL when it cannot be read, is
 * empty or costs too much. */
const char *v8_text(struct v8 *v, uint64_t object);

/* --- scripts.c --- */
/* Returns the number of a script: wire_language_v8_script(). 0: it cannot be read. */
uint64_t v8_script_number(const struct v8 *v, uint64_t address);
const struct v8_script *v8_script(struct v8 *v, uint64_t address);
/* Returns the line of a position in the script's source, 0: not known. */
uint32_t v8_script_line(const struct v8_script *s, uint32_t position);

/* --- names.c --- */
/* Returns true when an object is a JSFunction. Follows it as v8_type() does. */
bool v8_is_function(struct v8 *v, uint64_t *object);
/* Finds the name that a JSFunction has for itself: a property "name" that is a string. Returns what
 * stands for it in the function's id. 0: it has none, or it cannot be read. */
uint64_t v8_own_name(struct v8 *v, uint64_t function, uint64_t *ret_string);

/* --- functions.c --- */
/* Returns the name of the function of a SharedFunctionInfo, NULL: it has none. The text lives as
 * long as `v`; the address is not checked. */
const char *v8_shared_name(struct v8 *v, uint64_t shared);
/* Returns the index of the first variable's name in a ScopeInfo, in words, 0: it cannot be read, or
 * the names are in a table. */
uint32_t v8_scope_names(struct v8 *v, uint64_t scope, uint32_t *ret_n);
/* Returns NULL when there is no SharedFunctionInfo. */
const struct v8_function *v8_function(struct v8 *v, uint64_t shared);
/* Returns the function of a JSFunction. */
const struct v8_function *v8_function_of(struct v8 *v, uint64_t function);
/* Returns the function without the name that only its object has. Two of these are equal if their
 * functions are. */
static inline const struct v8_function *v8_plain(const struct v8_function *f)
{
	return f->plain ?: f;
}
/* Returns the id of the function of a SharedFunctionInfo or JSFunction (wire/language.h), 0: there
 * is none. */
uint64_t v8_function_id(struct v8 *v, uint64_t object);
struct runtime_frame v8_frame(struct v8 *v, const struct v8_at *at);
/* Adds a frame. */
void v8_add(struct v8 *v, const struct v8_function *f, int32_t place, runtime_frame_vec *ret);

/* --- code.c --- */
/* Returns true when an address lies in V8's code. made: in code that V8 has made at run time. */
bool v8_is_code(struct v8 *v, uint64_t addr, bool *ret_made);
/* Finds the code that V8 has made at an address. */
bool v8_code_find(struct v8 *v, uint64_t pc, struct v8_code *ret);
/* Returns the place in the bytecodes that baseline code executes. called: pc is a return
 * address. */
int32_t v8_baseline_place(struct v8 *v, const struct v8_code *c, uint64_t bytecodes, uint64_t pc,
			  bool called);

/* --- optimized.c --- */
/* Finds the functions that optimized code executes at a return address, innermost first. Returns
 * their number, 0 when the code's tables do not have the address, or belong to another function. */
uint32_t v8_optimized(struct v8 *v, const struct v8_code *c, const struct v8_function *f,
		      uint64_t pc, struct v8_at ret[V8_INLINED_MAX]);
/* Returns true when optimized code has tables for a return address. */
bool v8_optimized_has(struct v8 *v, const struct v8_code *c, uint64_t pc);

/* --- frames.c --- */
bool v8_step(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
	     runtime_frame_vec *ret);

/* --- v8_met.c --- */
/* See struct runtime_type. */
bool v8_wire(struct runtime *r, struct wire_language *ret);
const void *v8_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id);
uint32_t v8_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
		     struct runtime_frame *ret);

#endif
