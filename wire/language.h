/* Frames of interpreted languages in a stack, as programs take them.
 *
 * Behind a stack's native frames stand those of the language, innermost first, one word each:
 *
 *	bit 63		1: no address of user space has it
 *	bit 62		the frame was called from native code: the outermost of a run of the
 *			interpreter's loop
 *	bits 61..44	byte of the function's code; all ones: it has not begun
 *	bits 43..0	id of the function's code object: wire_language_id()
 *
 * The tracer puts them in the places of the loop's native frames (program/runtime/merge.c).
 *
 * The functions of Java and JavaScript have native frames. Their words stand among the native ones,
 * in true order, and bit 62 is 0 (bpf/java.bpf.h, bpf/javascript.bpf.h). The word
 * WIRE_LANGUAGE_HIDDEN stands for a native frame that is not shown.
 */
#ifndef DESCRY_WIRE_LANGUAGE_H
#define DESCRY_WIRE_LANGUAGE_H

#include "wire/wire_unwind.h"

#define WIRE_LANGUAGE_FRAME (1ull << 63)
#define WIRE_LANGUAGE_ENTRY (1ull << 62)
#define WIRE_LANGUAGE_IDS ((1ull << 44) - 1)
#define WIRE_LANGUAGE_ID(word) ((word)&WIRE_LANGUAGE_IDS)
#define WIRE_LANGUAGE_AT(word) ((uint32_t)((word) >> 44 & WIRE_LANGUAGE_BEFORE))
#define WIRE_LANGUAGE_HIDDEN WIRE_LANGUAGE_FRAME
enum { WIRE_LANGUAGE_BEFORE = 0x3ffff, WIRE_LANGUAGE_ABOUT = 3, WIRE_PYTHON_ABOUT = 4 };

/* In wire_stack.n, before the walk: from this bit on, the number of frames that are wanted without
 * native ones, and without functions that have no place of their own. 0: all frames are added to
 * the native ones. With the other bit, only the files and lines of Ruby's functions are wanted:
 * their method entries are not looked for. */
enum { WIRE_LANGUAGE_ALONE = 16, WIRE_LANGUAGE_LINES = 24 };
_Static_assert(WIRE_STACK_FRAMES < 1 << (WIRE_LANGUAGE_LINES - WIRE_LANGUAGE_ALONE), "a number");

/* A sum of words, each times an odd number of its own: the multiplications do not wait for each
 * other (multilinear hashing: Lemire, Kaser 2014). */
#define WIRE_LANGUAGE_TIMES(i) \
	((uint64_t[]){ 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, \
		       0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0xd6e8feb86659fd93, \
		       0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53 }[i])
static inline uint64_t wire_language_sum(uint32_t pid, uint64_t code,
					 const uint64_t about[WIRE_LANGUAGE_ABOUT])
{
	return (code ^ (uint64_t)pid << 47) * WIRE_LANGUAGE_TIMES(0) +
	       about[0] * WIRE_LANGUAGE_TIMES(1) + about[1] * WIRE_LANGUAGE_TIMES(2) +
	       about[2] * WIRE_LANGUAGE_TIMES(3);
}

/* Returns the id of a code object, from its process, its address and three of its pointers (names
 * and the table of lines). */
static inline uint64_t wire_language_id(uint32_t pid, uint64_t code,
					const uint64_t about[WIRE_LANGUAGE_ABOUT])
{
	return wire_unwind_mix(wire_language_sum(pid, code, about)) & WIRE_LANGUAGE_IDS;
}

/* Returns the id of a code object of Python. It has the line of the function's beginning, too,
 * because what is compiled again and again may have all its parts at the addresses of before. */
static inline uint64_t wire_language_python_id(uint32_t pid, uint64_t code,
					       const uint64_t about[WIRE_PYTHON_ABOUT],
					       uint64_t line)
{
	uint64_t h = wire_language_sum(pid, code, about) + about[3] * WIRE_LANGUAGE_TIMES(4) +
		     (line & 0xffffffff) * WIRE_LANGUAGE_TIMES(5);

	return wire_unwind_mix(h) & WIRE_LANGUAGE_IDS;
}

/* --- what a program remembers of functions: whether a description selects them. A word of the
 * table has a function's number, with the answer in bit 0 --- */
enum {
	WIRE_FUNCTIONS = 4096,
	WIRE_FUNCTION_SHIFT = 64 - 12,
	WIRE_FUNCTION_UNKNOWN = 2, /* a number by which nothing is remembered */
	WIRE_FUNCTION_TEXT = 16,   /* words of a text, at most */
};
#define WIRE_FUNCTION_MIX 0x9e3779b97f4a7c15ull
static inline uint64_t wire_function_mix(uint64_t h, uint64_t word)
{
	return (h ^ word) * WIRE_FUNCTION_MIX;
}
/* Returns the number of a function that has this hash. */
static inline uint64_t wire_function_number(uint64_t h)
{
	return ((h ^ h >> 32) | 2) & ~1ull;
}
/* Returns the number of a function by the address of its code object or method entry and three of
 * its words. salt: the question. */
static inline uint64_t wire_function_id(uint64_t code, const uint64_t about[WIRE_LANGUAGE_ABOUT],
					uint64_t salt)
{
	uint64_t h = wire_function_mix(salt, code);

	for (int i = 0; i < WIRE_LANGUAGE_ABOUT; i++)
		h = wire_function_mix(h, about[i]);
	return wire_function_number(h);
}
/* Returns the answer, 0 or 1, if it is remembered; else the number. */
static inline uint64_t wire_function_answer(const uint64_t table[WIRE_FUNCTIONS], uint64_t number)
{
	const uint64_t v = table[number >> WIRE_FUNCTION_SHIFT] ^ number;

	return v <= 1 ? v : number;
}

/* Returns the id of a method of Ruby, from its code as above (0 and zeros: a function of C), and
 * from the method entry with its definition, name and owner (0: none). */
static inline uint64_t wire_language_method_id(uint32_t pid, uint64_t code,
					       const uint64_t about[WIRE_LANGUAGE_ABOUT],
					       uint64_t entry,
					       const uint64_t method[WIRE_LANGUAGE_ABOUT])
{
	uint64_t h = wire_language_sum(pid, code, about);

	if (entry)
		h += entry * WIRE_LANGUAGE_TIMES(4) + method[0] * WIRE_LANGUAGE_TIMES(5) +
		     method[1] * WIRE_LANGUAGE_TIMES(6) + method[2] * WIRE_LANGUAGE_TIMES(7);
	return wire_unwind_mix(h) & WIRE_LANGUAGE_IDS;
}

/* Returns the id of a Method of Java, from its address, its ConstMethod (address, and the word with
 * the index of its name), the constants, and the name of the class: address and first word without
 * the count of its uses. The JVM uses the address of each again. */
static inline uint64_t wire_language_java_id(uint32_t pid, uint64_t method,
					     const uint64_t constant[2], uint64_t constants,
					     const uint64_t name[2])
{
	const uint64_t about[WIRE_LANGUAGE_ABOUT] = { constant[0] ^ constants << 1,
						      constant[1] ^ name[0], name[1] };

	return wire_language_id(pid, method, about);
}

/* Returns the id of a piece of Java's compiled code, from its address, the address of its name, its
 * Method and the number of its compilation, at a place: WIRE_JAVA_PLACE(). */
static inline uint64_t wire_language_blob_id(uint32_t pid, uint64_t blob,
					     const uint64_t about[WIRE_LANGUAGE_ABOUT],
					     uint64_t place)
{
	return wire_unwind_mix(wire_language_id(pid, blob, about) ^ place) & WIRE_LANGUAGE_IDS;
}

/* Returns the number of a script of JavaScript. Each thread with an engine of its own counts its
 * scripts from 0 on, so the length of the script's text tells scripts of threads apart. */
static inline uint64_t wire_language_v8_script(uint32_t number, uint32_t length)
{
	return (uint64_t)length << 32 | number << 1 | 1;
}

/* Returns the id of a function of JavaScript. The collector moves objects, so it has no address: of
 * a function in a script, wire_language_v8_script() and the function's number in the script; of one
 * that is built in, 0 and the hash and length of its name. Others have their address
 * and that of their name, and may lose their names. A function whose object has a name of its own
 * has the id that these give for its id as the script, and for what stands for the name. */
static inline uint64_t wire_language_v8_id(uint32_t pid, uint64_t script, uint64_t function)
{
	const uint64_t about[WIRE_LANGUAGE_ABOUT] = { function, 0, 0 };

	return wire_language_id(pid, script, about);
}

/* Returns the id of a function of JavaScript at a place (WIRE_JAVA_PLACE()) in code that was
 * compiled for it, from the bytes around it: other code may have been there before. */
static inline uint64_t wire_language_v8_place(uint64_t id, uint64_t place, const uint64_t code[4])
{
	uint64_t h = wire_unwind_mix(id ^ place);

	h = wire_unwind_mix(h ^ code[0] ^ code[1] << 1);
	h = wire_unwind_mix(h ^ code[2] ^ code[3] << 1);
	return h & WIRE_LANGUAGE_IDS;
}
enum {
	WIRE_V8_BEFORE = 16, /* bytes of code that are read before a place */
	/* A name may be a tree of strings. Limits of the words of one that are read, of the strings
	 * that are left to read (a power of two), and of those that are read. */
	WIRE_V8_TEXT_WORDS = 8,
	WIRE_V8_PIECES = 4,
	WIRE_V8_STEPS = 8,
};

/* Returns what stands for a name in the id of a function, from what stands for the beginning of the
 * name, and its next piece: the hash and length, or the characters if V8 has not made the hash yet.
 * It is never 0. */
static inline uint64_t wire_language_v8_piece(uint64_t before, uint64_t word)
{
	return wire_unwind_mix(before ^ word) | 1;
}

static inline uint64_t wire_language_v8_text(uint64_t before, uint32_t length,
					     const uint64_t *characters)
{
	uint64_t h = wire_language_v8_piece(before, length);

	for (int i = 0; i < WIRE_V8_TEXT_WORDS; i++)
		h = wire_language_v8_piece(h, characters[i]);
	return h;
}

/* A place in a piece of code. called: it is a return address. It is the `entry` of a request. That
 * of a Method is 0. */
#define WIRE_JAVA_PLACE(pc, called) ((pc) | (uint64_t)(called) << 63)
#define WIRE_JAVA_PLACE_PC(place) ((place) & ~(1ull << 63))
#define WIRE_JAVA_PLACE_CALLED(place) ((place) >> 63)
#define WIRE_JAVA_NOWHERE 1ull /* a stub has one name, wherever it is interrupted */

static inline uint64_t wire_language_word(uint64_t id, uint64_t at)
{
	return WIRE_LANGUAGE_FRAME | id |
	       (at < WIRE_LANGUAGE_BEFORE ? at : WIRE_LANGUAGE_BEFORE) << 44;
}

/* The links between frames: see enum python_frames. Ruby's frames lie one after the other. */
enum {
	WIRE_LANGUAGE_OBJECTS,
	WIRE_LANGUAGE_CFRAMES,
	WIRE_LANGUAGE_SHIMS,
	WIRE_LANGUAGE_RUBY,
	/* native frames: d_ustack walks them */
	WIRE_LANGUAGE_JAVA,
	WIRE_LANGUAGE_V8,
};

/* Byte offsets, as in struct python_layout. */
struct wire_python {
	uint32_t shim, scale; /* scale: bytes of code for each step of the instruction */
	uint32_t interpreter_threads, thread_next, thread_id, thread_frame;
	uint32_t by_cframe, cframe_frame; /* by_cframe: thread_frame has a _PyCFrame's address */
	uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_is_entry;
	/* code_about: WIRE_PYTHON_ABOUT words; of WIRE_LANGUAGE_OBJECTS the last does not count */
	uint32_t code_about, code_line, code_instructions;
	/* So far below `root` is a word that is 0 until the interpreter ends; 0: not known. */
	uint32_t finalizing;
	/* From where on all that is needed of a frame and of a code object lies there, and in how
	 * many bytes, less than WIRE_PYTHON_NEAR. */
	uint32_t frame_low, frame_size, code_low, code_size;
};
enum { WIRE_PYTHON_NEAR = 128 };

/* Byte offsets, as in struct ruby_layout; members that lie at the same place in all versions are
 * constants of this file. */
struct wire_ruby {
	uint32_t vm_ractors;    /* 0: there are none */
	int32_t ractor_threads; /* from the Ractor's node in the list of Ractors */
	uint32_t vm_threads;    /* without Ractors: head of the list of threads */
	uint32_t thread_native, thread_id, thread_context, frame_size;
	uint32_t vm_main; /* the main thread, NULL when the VM ends; 0: not known */
};

/* Byte offsets, as in struct jvm_layout. Those of members of CodeBlob and nmethod have the width in
 * bytes above: WIRE_JAVA_MEMBER(); 0: there is no such member. */
struct wire_java {
	struct {
		uint64_t low, size, segments;
	} heap[4];
	uint64_t interpreter, interpreter_size;
	uint64_t stub_return; /* the return address in call_stub */
	uint32_t shift, block;
	uint32_t blob_name, blob_size, blob_frame_words, blob_complete;
	uint32_t blob_code; /* is an address; else */
	uint32_t blob_code_offset;
	uint32_t method, compilation, original_pc;
	uint32_t deopt[2]; /* are addresses; else */
	uint32_t deopt_offset[2];
	uint32_t method_const, const_constants, const_name, const_code_size, const_size;
	uint32_t constants_class, class_constants, class_name;
	uint32_t symbol_count; /* place of the 16-bit count of a Symbol's uses */
};
#define WIRE_JAVA_MEMBER(at, width) ((uint32_t)(at) | (uint32_t)(width) << 16)

enum {
	WIRE_JAVA_BLOB = 344,  /* bytes of a CodeBlob or nmethod that are read */
	WIRE_JAVA_CONST = 48,  /* ... of a ConstMethod */
	WIRE_JAVA_HOPS = 128,  /* limit of steps through a map of segments */
	WIRE_JAVA_PUSHED = 32, /* words that a stub may have pushed */
	WIRE_JAVA_FRAME_MAX = 1 << 20,
	WIRE_JAVA_STUB_MAX = 1 << 16,
	/* a frame of the interpreter: words from rbp - 64 on */
	WIRE_JAVA_FRAME_BELOW = 64,
	WIRE_JAVA_FRAME_WORDS = 10,
	WIRE_JAVA_BCP = 0,
	WIRE_JAVA_METHOD = 5,
	WIRE_JAVA_SENDER_SP = 7,
	WIRE_JAVA_RBP = 8,
	WIRE_JAVA_RETURN = 9,
};

/* The objects of V8 that a walk examines. */
enum { WIRE_V8_FUNCTION, WIRE_V8_SHARED, WIRE_V8_SCRIPT, WIRE_V8_BYTECODES, WIRE_V8_KINDS };

/* Byte offsets in V8's objects, and the types that their Maps have, as in struct v8_numbers. */
struct wire_v8 {
	uint64_t blob, blob_size; /* built-in code: address in the file */
	uint32_t map_type, type_map;
	uint32_t types[WIRE_V8_KINDS]; /* several types follow that of a function */
	uint32_t type_no_string;       /* the types of strings are below this one */
	uint32_t function_shared, shared_name, shared_script, shared_flags;
	uint32_t script_source, script_number;
	uint32_t bytecodes_length, bytecodes_data;
	uint32_t opcodes;
	uint32_t builtin_exit; /* mark of the frame of a call of C++ */
	/* for names that only a function's object has */
	uint32_t map_bits3, map_dictionary, map_descriptors, map_first, map_words;
	uint32_t function_properties, array_data, names_prefix;
	/* bits of a string's type: its form and the width of its characters */
	uint32_t text_form, text_bits, text_cons, text_flat, text_first, text_bytes;
};

enum {
	WIRE_V8_ENTRY = WIRE_LANGUAGE_BEFORE - 1, /* the place in front of the first bytecode */
	WIRE_V8_FUNCTIONS = 16,                   /* types behind that of a function */
	WIRE_V8_OBJECT_WORDS = 9,                 /* of an object that are read at most */
	WIRE_V8_MEMBERS = 16,                     /* room for them, a power of two */
	WIRE_V8_FUNCTION_WORDS = 5,
	WIRE_V8_SHARED_WORDS = 8,
	WIRE_V8_FRAME_MAX = 1 << 26,
	WIRE_V8_FRAME_KINDS = 64, /* limit of the kinds of frames, which begin at 1 */
	/* a frame: words from rbp - 40 on */
	WIRE_V8_FRAME_BELOW = 40,
	WIRE_V8_PLACE = 0,
	WIRE_V8_FRAME_BYTECODES = 1,
	WIRE_V8_FRAME_FUNCTION = 3,
	WIRE_V8_CONTEXT = 4, /* or the kind of frame */
	WIRE_V8_RBP = 5,
	WIRE_V8_RETURN = 6,
	WIRE_V8_EXIT_FUNCTION = 8,
	WIRE_V8_FRAME_WORDS = 9,
	/* an object's properties: three words each, in an array of descriptors or a dictionary */
	WIRE_V8_MAP_WORDS = 8,  /* of a Map that are read */
	WIRE_V8_PLAIN = 8,      /* Maps that a walk remembers */
	WIRE_V8_OWN_SHIFT = 10, /* number of an object's descriptors */
	WIRE_V8_OWN_MASK = 0x3ff,
	WIRE_V8_DESCRIPTORS = 24, /* bytes before the first */
	WIRE_V8_PROPERTY = 24,    /* bytes of a key, details and value, or key, value and details */
	WIRE_V8_NAMED = 1,        /* the function's descriptor that is its name */
	WIRE_V8_ACCESSOR = 1,     /* details */
	WIRE_V8_IN_DESCRIPTOR = 1 << 5,
	WIRE_V8_INDEX_SHIFT = 19,
	WIRE_V8_DICTIONARY = 3,         /* words before a dictionary's own prefix */
	WIRE_V8_ENTRIES_MAX = 32,       /* of a dictionary that are searched */
	WIRE_V8_NAME_TEXT = 0x656d616e, /* "name" */
	/* a String: hash and length, in the upper half, lie in the second word */
	WIRE_V8_NAME = 8,
	WIRE_V8_HASH_FORM = 3, /* bits of the hash that say what it is */
	WIRE_V8_HASH_WHOLE = 2,
};

/* CPython: the place of a name, from a frame on: its code object, the name in that. */
#define WIRE_PYTHON_PATH(code, name) ((uint32_t)(uint16_t)(code) | (uint32_t)(uint16_t)(name) << 16)
enum {
	WIRE_PYTHON_HASH = 24, /* in a str: a number of its text, -1 not computed yet */
	WIRE_PYTHON_ASCII = 0x40
};

/* MRI 2.7 to 3.4. */
enum {
	/* rb_execution_context_t */
	WIRE_RUBY_CONTEXT_STACK = 0,
	WIRE_RUBY_CONTEXT_STACK_SIZE = 8, /* words */
	WIRE_RUBY_CONTEXT_FRAME = 16,
	WIRE_RUBY_STACK_SIZE_MAX = 1 << 28,
	WIRE_RUBY_FRAME_SCOPE = 32, /* of a frame: pc, stack pointer, iseq, self, scope */
	/* flags of a frame, which its scope has */
	WIRE_RUBY_MAGIC_MASK = 0x7fff0001,
	WIRE_RUBY_MAGIC_C = 0x55550001,
	WIRE_RUBY_FLAG_LOCAL = 0x2,
	WIRE_RUBY_FLAG_FINISH = 0x20, /* the loop returns when this frame does */
	/* objects: flags */
	WIRE_RUBY_KIND_MASK = 0xf01f,
	WIRE_RUBY_SVAR = 0x201a,
	WIRE_RUBY_METHOD = 0x601a,
	WIRE_RUBY_SVAR_METHOD = 8,
	WIRE_RUBY_METHOD_ABOUT = 16, /* definition, name, owner */
	WIRE_RUBY_DEFINITION_NAME = 32,
	WIRE_RUBY_DEFINITION_CODE = 8,
	/* iseq and its body: base label, label, first line */
	WIRE_RUBY_ISEQ_BODY = 16,
	WIRE_RUBY_BODY_INSTRUCTIONS = 8,
	WIRE_RUBY_BODY_ABOUT = 72,
	/* what d_ruby() returns of a method */
	WIRE_RUBY_IS_CLASS = 0,
	WIRE_RUBY_IS_METHOD = 1,
	WIRE_RUBY_IS_FILE = 2,
	WIRE_RUBY_IS_LINE = 3,
	WIRE_RUBY_IS_HERE = 4, /* the line that begins at the frame's instruction; 0: none does */
	/* of an execution context of 3.3: the class of its exception; the file and the line of the
	 * innermost frame that is not one of C */
	WIRE_RUBY_IS_RAISED = 5,
	WIRE_RUBY_IS_SOURCE = 6,
	WIRE_RUBY_IS_SOURCE_LINE = 7,
	WIRE_RUBY_PARTS = 0xff,
	/* The objects are those of Ruby 3.3: a String's text may be behind its length, a class has
	 * its name in a member, lines are ints. Else they are those of 2.7 to 3.1. */
	WIRE_RUBY_3_3 = 0x100,
};

/* The facts about a process's interpreter that a walk needs: 64 words at a multiple of 64 in the
 * chunks of unwind tables (wire/wire_unwind.h). */
struct wire_language {
	uint64_t root; /* address of the word that has the first interpreter's; Ruby: the VM's */
	uint32_t frames;
	union {
		struct wire_python python;
		struct wire_ruby ruby;
		struct wire_java java;
		struct wire_v8 v8;
		uint32_t words[60];
	};
};
enum { WIRE_LANGUAGE_WORDS = 64 };

enum {
	WIRE_LANGUAGE_THREADS = 1024, /* limit of threads that are examined */
	WIRE_LANGUAGE_STEPS = 4, /* scopes of Ruby that are examined for each frame, on average */
};

#ifndef DESCRY_BPF
_Static_assert(sizeof(struct wire_language) == WIRE_LANGUAGE_WORDS * 4, "language");
#endif

#endif
