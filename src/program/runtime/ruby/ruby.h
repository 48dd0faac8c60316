/* MRI 2.7 to 3.4: the members of its structures that the walk of frames reads. */
#ifndef DESCRY_PROGRAM_RUNTIME_RUBY_RUBY_H
#define DESCRY_PROGRAM_RUNTIME_RUBY_RUBY_H

#include "base/hash.h"
#include "program/object/object.h"
#include "program/runtime/runtime.h"
#include "program/space/mapping.h"

/* Versions whose code is known, not only their structures. */
enum { RUBY_2_7 = 0x207, RUBY_3_1 = 0x301, RUBY_3_3 = 0x303 };

/* Byte offsets. Members with the same offset in all versions are constants of the file that reads
 * them. */
struct ruby_layout {
	uint16_t version; /* major << 8 | minor: RUBY_* */
	/* Head of the VM's list of Ractors, and in a Ractor its node and the head of its list of
	 * threads. 2.7 has no Ractors: vm_ractors is 0, and vm_threads the VM's own list. */
	uint16_t vm_ractors, ractor_node, ractor_threads, vm_threads;
	uint16_t vm_main; /* the VM's main thread, NULL when it ends; 0: not known */
	uint16_t thread_vm, thread_context;
	uint16_t thread_native; /* the structure that has thread_id; 0: the thread itself */
	uint16_t thread_id;
	uint16_t context_thread;
	uint16_t frame_size;
	uint16_t body_lines, body_local;
	uint8_t line_size;       /* size of an entry of the table of lines */
	bool line_fixnum;        /* first_lineno is an Integer, not an int */
	bool length_in_flags;    /* a short String has its length in its flags */
	uint32_t array_embedded; /* mask of the length of a short Array, from bit 15 of its flags on */
	/* Up to 3.2, the name of a class, and the object of a singleton class, are hidden instance
	 * variables. Up to 3.1, class_extra is the pointer to a structure with the table of these
	 * variables. In 3.2, class_values is the pointer to their values, and the VM's shapes give
	 * the index of each. Later, both are members of the class. */
	uint16_t class_extra, extra_variables;
	uint16_t vm_shapes, class_values;
	uint16_t class_path, class_attached, class_flags;
	uint8_t permanent; /* bit of class_flags: the path is a name, not "#<Class:0x...>" */
};

/* The addresses of a function. */
struct ruby_range {
	uint64_t start, size;
};

struct ruby {
	struct runtime runtime; /* first */
	struct object *object;
	uint64_t bias;
	struct ruby_layout layout;
	uint64_t vm;            /* address of the word that has the VM's */
	uint64_t string_class;  /* of the word that has class String's; 0 not known */
	uint64_t path_variable; /* ID of the variable that has the names of classes; 0 not known */
	uint64_t symbols;       /* of the table of symbols; 0 not known */
	uint32_t symbol_searches;
	/* The loop has two functions: exec pushes a tag for longjmp() and calls core, in which the
	 * instructions are. Size 0: not known (yet). */
	struct ruby_range exec, core;
	struct ruby_range text; /* the object's code */
	uint8_t *table;         /* .eh_frame_hdr, which has the beginnings of functions */
	uint64_t table_addr;
	size_t ntable;
	struct arena names;
	struct hash codes;     /* address of an iseq: struct ruby_code * */
	struct hash functions; /* addresses of an iseq and a method entry: name */
	struct hash labels;    /* resume address of a tag -> whether it lies in exec */
	size_t budget;         /* bytes of names and tables that may still be read */
};

/* A piece of code: a method's, a block's, a file's. */
struct ruby_code {
	uint64_t address;
	const char *label, *base; /* "block in save", "save"; NULL: cannot be read */
	const char *file;
	uint64_t instructions; /* address */
	uint32_t size;         /* in words */
	uint32_t kind;         /* enum iseq_type */
	uint32_t first_line;
	uint64_t local; /* the iseq of the method or file that contains it */
	/* The entries' instructions: a bit vector, else their positions. */
	const uint8_t *lines, *starts;
	uint32_t nlines, nstarts; /* entries, bytes */
	const uint32_t *positions;
};

enum { RUBY_ISEQ_METHOD = 1 };

/* --- layout.c --- */
/* Returns the version's layout, NULL: not known. */
const struct ruby_layout *ruby_layout(uint32_t major, uint32_t minor);

/* --- object.c --- */
enum { RUBY_CLASS = 2, RUBY_MODULE = 3, RUBY_STRING = 5, RUBY_ARRAY = 7, RUBY_IMEMO = 0x1a };
enum { RUBY_IMEMO_CREF = 1, RUBY_IMEMO_SVAR = 2, RUBY_IMEMO_METHOD = 6, RUBY_IMEMO_ISEQ = 7 };
bool ruby_word(const struct ruby *r, uint64_t addr, uint64_t *ret);
/* Takes n bytes from the budget of reads. */
bool ruby_afford(struct ruby *r, size_t n);
/* Reads the flags of an object. Returns false when the value is no object. */
bool ruby_object(const struct ruby *r, uint64_t value, uint64_t *ret_flags);
bool ruby_is(const struct ruby *r, uint64_t value, uint32_t type);
/* Returns the kind of an internal object (RUBY_IMEMO_*), -1: it is none. */
int ruby_imemo(const struct ruby *r, uint64_t value);
/* Finds the bytes of a String. */
bool ruby_string_bytes(const struct ruby *r, uint64_t string, uint64_t *ret_addr, uint64_t *ret_n);
/* Returns the text of a String, NULL: it cannot be read. */
const char *ruby_text(struct ruby *r, uint64_t string);
uint32_t ruby_array_length(const struct ruby *r, uint64_t array);
bool ruby_array_item(const struct ruby *r, uint64_t array, uint32_t i, uint64_t *ret);

/* --- symbol.c --- */
/* Searches for the table of symbols, which has no exported name. */
void ruby_find_symbols(struct ruby *r);
/* Returns the name of an ID, NULL: the table does not have it. */
const char *ruby_id_name(struct ruby *r, uint64_t id);
/* Calls fn for each word of the interpreter's own variables, until it returns true. */
bool ruby_each_variable(struct ruby *r,
			bool (*fn)(struct ruby *r, uint64_t addr, const uint64_t *w));
enum { RUBY_VARIABLE_WORDS = 4 }; /* number of words at w, the word at addr first */

/* --- class.c --- */
/* Returns the name of a class or module; for a singleton class, the name of the class it belongs
 * to. NULL: it has none. */
const char *ruby_class_name(struct ruby *r, uint64_t class, bool *ret_singleton);

/* --- code.c --- */
/* Returns the data that was first read of the iseq at an address. NULL: there is none. */
const struct ruby_code *ruby_code(struct ruby *r, uint64_t address);
/* Reads the same again. */
const struct ruby_code *ruby_code_read(struct ruby *r, uint64_t address);
/* Returns true when an iseq of this kind (enum iseq_type) is at the address. */
bool ruby_code_is(const struct ruby *r, uint64_t address, uint32_t kind);
/* The line that an instruction pointer is in, 0: not known. Points behind the instruction. */
uint32_t ruby_line(const struct ruby *r, const struct ruby_code *c, uint64_t pc);

/* --- name.c --- */
/* Returns the method entry in a value of a scope, or in a structure in its place (svar). 0:
 * none. */
uint64_t ruby_method(const struct ruby *r, uint64_t value, bool svar);
/* Returns the name of a frame's function, from its code (NULL: it is one of C) and its method entry
 * (0: none). NULL: not known. */
const char *ruby_function_name(struct ruby *r, const struct ruby_code *c, uint64_t entry);

/* --- walk_data.c --- */
/* The data for programs that walk the frames, and the functions that they met: see struct
 * runtime_type. */
bool ruby_wire(struct runtime *runtime, struct wire_language *ret);
const void *ruby_learn(struct runtime *runtime, uint64_t address, uint64_t entry, uint64_t id);
uint32_t ruby_describe(struct runtime *runtime, const void *code, uint32_t at, uint32_t i,
		       struct runtime_frame *ret);

/* --- lines.c --- */
/* Returns the number of entries of the line table that begin at an instruction or before it. */
uint32_t ruby_lines_rank(const uint8_t *starts, uint32_t n, uint32_t at);

/* --- loop.c --- */
/* Finds the function around an address of the object. Returns false when it is not known. */
bool ruby_function(struct ruby *r, uint64_t addr, struct ruby_range *ret);
/* Finds the first function at an address or behind it, and moves the address behind it. Returns
 * false when there is none, or when a hostile table leads to no higher address. */
bool ruby_next_function(struct ruby *r, uint64_t *addr, struct ruby_range *ret);
/* Finds the loop's function with the instructions, by one instruction of a program. */
void ruby_find_core(struct ruby *r, const struct ruby_code *c);
/* Returns true when a tag resumes code of the loop. */
bool ruby_is_exec(struct ruby *r, uint64_t label);

/* --- entries.c --- */
/* A place in the code, with registers in x86's order. The frame is at `moved` behind the value of
 * `frame`. With an entry, there is no frame yet: `frame` has its iseq, `entry` its method entry. */
struct ruby_place {
	uint64_t addr;
	uint8_t frame;
	uint8_t entry; /* RUBY_NO_REGISTER: none */
	int16_t moved;
	bool leaf; /* no frame: `frame` has the call, whose cache has the method entry */
};
enum { RUBY_CALL_CACHE = 8, RUBY_CACHE_ENTRY = 16 };
enum { RUBY_NO_REGISTER = 255 };
enum { RUBY_PLACES_MAX = 96 };
struct ruby_places {
	/* A method's frame is pushed at the first nentries of them. At the others a frame of any
	 * kind is popped. */
	struct ruby_place v[RUBY_PLACES_MAX];
	uint32_t nentries, n;
	uint64_t symbols; /* the table of symbols */
	uint64_t unknown; /* Ruby's text for the name of a class that has none */
	bool is_3_3;      /* objects are as in WIRE_RUBY_3_3 */
};
/* Finds them in a file, all addresses as linked. Returns the reason when it does not find all. */
const char *ruby_places(struct object *o, struct ruby_places *ret);

/* Finds the text that Ruby itself gives for a class without a name. */
bool ruby_unknown(struct object *o, uint64_t *ret);

/* --- raise_event.c --- */
/* Finds the place in a file, as linked: `frame` has the execution context. *ret_unknown: as
 * ruby_unknown(). Returns the reason when it does not. */
const char *ruby_raise_event(struct object *o, struct ruby_place *ret, uint64_t *ret_unknown);

/* --- leaf.c --- */
/* Finds where Ruby 3.3 calls a leaf, and the last instruction of that function before it jumps. */
bool ruby_leaf(struct ruby *r, const uint8_t *text, uint32_t n, uint64_t *ret_begin,
	       uint64_t *ret_end);

/* --- line_event.c --- */
struct ruby_line_event {
	uint64_t function; /* called with the execution context and the frame, before the instruction */
	uint64_t events; /* of the word with the events for which iseqs are made */
	bool is_3_3;
};
enum { RUBY_EVENT_LINE = 1 }; /* in that word */
/* Finds them in a file, as linked. Returns the reason when it does not. */
const char *ruby_line_event(struct object *o, struct ruby_line_event *ret);

/* --- gc_events.c --- */
struct ruby_gc_events {
	uint64_t begin, end; /* of marking */
};
/* Finds them in a file, as linked. Returns the reason when it does not. */
const char *ruby_gc_events(struct object *o, struct ruby_gc_events *ret);

/* --- allocations.c --- */
/* A place in the code that makes an object: the register, in x86's order, has its address, and its
 * flags and class are set. */
struct ruby_allocation {
	uint64_t addr;
	uint8_t object;
	uint8_t counter; /* member of the collector's variables: number of objects ever made */
};
enum { RUBY_ALLOCATIONS_MAX = 64 };
struct ruby_allocations {
	struct ruby_allocation v[RUBY_ALLOCATIONS_MAX];
	uint32_t n;
	uint8_t counter; /* of all of them */
};
/* Finds them in a file, all addresses as linked. Each object passes one of them. Returns the reason
 * when it does not find them. */
const char *ruby_allocations(struct object *o, struct ruby_allocations *ret);

/* --- compiled.c --- */
/* Returns true when a mapping alone shows that Ruby compiles its methods (YJIT, RJIT). */
bool ruby_compiled_is(const struct mapping *m);
/* Returns true when all mappings of a process show it. */
bool ruby_compiled_in(const struct mappings *maps);

/* --- pools.c --- */
/* The same for Ruby 3.3, in r->text. Returns false when it does not find the place. */
bool ruby_pool_allocations(struct ruby *r, const uint8_t *text, uint32_t n,
			   struct ruby_allocations *ret);

/* --- frames.c --- */
void ruby_frames(struct runtime *runtime, const struct space_thread *t, runtime_frame_vec *ret);
/* --- compiled.c --- */
/* Returns true when a mapping alone shows that Ruby compiles its methods (YJIT, RJIT). */
bool ruby_compiled_is(const struct mapping *m);
/* Returns true when all mappings of a process show it. */
bool ruby_compiled_in(const struct mappings *maps);

/* Checks that the first thread of a VM leads back to the VM. */
bool ruby_is_vm(const struct ruby *r, uint64_t vm);

#endif
