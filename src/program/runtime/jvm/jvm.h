/* HotSpot, the JVM of OpenJDK: finds the code that it has made, and the Java functions in it.
 *
 * A Java function has native frames: one that the interpreter runs has a frame of the interpreter's
 * code, and a compiled one has a frame of its nmethod, in which further functions may be inlined.
 * The frames are linked as those of C are, so the walk of the native stack reaches them. libjvm.so
 * publishes the offsets of its structures' members (gHotSpotVMStructs, vmStructs.cpp).
 */
#ifndef DESCRY_PROGRAM_RUNTIME_JVM_JVM_H
#define DESCRY_PROGRAM_RUNTIME_JVM_JVM_H

#include "base/hash.h"
#include "program/object/object.h"
#include "program/runtime/runtime.h"

/* X(name, required, type, member, other type, other member): members, and their names in other
 * versions. */
#define JVM_MEMBERS(X) \
	X(method_const, 1, "Method", "_constMethod", "", "") \
	X(method_access, 1, "Method", "_access_flags", "", "") \
	X(method_virtual, 0, "Method", "_vtable_index", "", "") \
	X(method_intrinsic, 0, "Method", "_intrinsic_id", "", "") \
	X(method_entry, 0, "Method", "_i2i_entry", "", "") \
	X(method_from, 0, "Method", "_from_interpreted_entry", "", "") \
	X(const_constants, 1, "ConstMethod", "_constants", "", "") \
	X(const_parameters, 0, "ConstMethod", "_size_of_parameters", "", "") \
	X(const_words, 1, "ConstMethod", "_constMethod_size", "", "") \
	X(const_flags, 1, "ConstMethod", "_flags", "ConstMethod", "_flags._flags") \
	X(const_code_size, 1, "ConstMethod", "_code_size", "", "") \
	X(const_name, 1, "ConstMethod", "_name_index", "", "") \
	X(constants_class, 1, "ConstantPool", "_pool_holder", "", "") \
	X(constants_length, 1, "ConstantPool", "_length", "", "") \
	X(constants_file, 0, "ConstantPool", "_source_file_name_index", "", "") \
	X(class_constants, 1, "InstanceKlass", "_constants", "", "") \
	X(class_file, 0, "InstanceKlass", "_source_file_name_index", "", "") \
	X(class_name, 1, "Klass", "_name", "", "") \
	X(symbol_length, 1, "Symbol", "_length", "", "") \
	X(symbol_text, 1, "Symbol", "_body[0]", "Symbol", "_body") \
	X(array_length, 1, "GrowableArrayBase", "_len", "GenericGrowableArray", "_len") \
	X(array_data, 1, "GrowableArray<int>", "_data", "", "") \
	X(heap_memory, 1, "CodeHeap", "_memory", "", "") \
	X(heap_segments, 1, "CodeHeap", "_segmap", "", "") \
	X(heap_shift, 1, "CodeHeap", "_log2_segment_size", "", "") \
	X(memory_low, 1, "VirtualSpace", "_low", "", "") \
	X(memory_high, 1, "VirtualSpace", "_high", "", "") \
	X(memory_end, 0, "VirtualSpace", "_high_boundary", "", "") \
	X(queue_buffer, 0, "StubQueue", "_stub_buffer", "", "") \
	X(queue_limit, 0, "StubQueue", "_buffer_limit", "", "") \
	X(block_used, 1, "HeapBlock::Header", "_used", "", "") \
	X(blob_name, 1, "CodeBlob", "_name", "", "") \
	X(blob_size, 1, "CodeBlob", "_size", "", "") \
	X(blob_frame_words, 1, "CodeBlob", "_frame_size", "", "") \
	X(blob_complete, 1, "CodeBlob", "_frame_complete_offset", "", "") \
	X(blob_code, 0, "CodeBlob", "_code_begin", "", "") \
	X(blob_code_offset, 0, "CodeBlob", "_code_offset", "", "") \
	X(blob_mutable, 0, "CodeBlob", "_mutable_data", "", "") \
	X(blob_relocation_size, 0, "CodeBlob", "_relocation_size", "", "") \
	X(compiled_method, 1, "nmethod", "_method", "CompiledMethod", "_method") \
	X(compiled_number, 0, "nmethod", "_compile_id", "", "") \
	X(compiled_immutable, 0, "nmethod", "_immutable_data", "", "") \
	X(compiled_immutable_size, 0, "nmethod", "_immutable_data_size", "", "") \
	X(compiled_pcs, 1, "nmethod", "_scopes_pcs_offset", "", "") \
	X(compiled_pcs_end, 0, "nmethod", "_dependencies_offset", "", "") \
	X(compiled_scopes, 0, "CompiledMethod", "_scopes_data_begin", "", "") \
	X(compiled_scopes_offset, 0, "nmethod", "_scopes_data_offset", "", "") \
	X(compiled_metadata, 0, "nmethod", "_metadata_offset", "", "") \
	X(compiled_entry, 0, "nmethod", "_verified_entry_point", "", "") \
	X(compiled_entry_offset, 0, "nmethod", "_verified_entry_offset", "", "") \
	X(compiled_osr_entry, 1, "nmethod", "_osr_entry_point", "", "") \
	X(compiled_osr_bci, 1, "nmethod", "_entry_bci", "", "") \
	X(compiled_deopt, 0, "CompiledMethod", "_deopt_handler_begin", "nmethod", \
	  "_deopt_handler_begin") \
	X(compiled_deopt_mh, 0, "CompiledMethod", "_deopt_mh_handler_begin", "nmethod", \
	  "_deopt_mh_handler_begin") \
	X(compiled_deopt_offset, 0, "nmethod", "_deopt_handler_offset", "nmethod", \
	  "_deopt_handler_entry_offset") \
	X(compiled_deopt_mh_offset, 0, "nmethod", "_deopt_mh_handler_offset", "", "") \
	X(compiled_original_pc, 1, "nmethod", "_orig_pc_offset", "", "") \
	X(pc_offset, 1, "PcDesc", "_pc_offset", "", "") \
	X(pc_scope, 1, "PcDesc", "_scope_decode_offset", "", "") \
	X(threads_length, 0, "ThreadsList", "_length", "", "") \
	X(threads_first, 0, "ThreadsList", "_threads", "", "") \
	X(thread_next, 0, "JavaThread", "_next", "", "") \
	X(thread_os, 1, "JavaThread", "_osthread", "Thread", "_osthread") \
	X(thread_anchor, 1, "JavaThread", "_anchor", "", "") \
	X(anchor_sp, 1, "JavaFrameAnchor", "_last_Java_sp", "", "") \
	X(os_id, 1, "OSThread", "_thread_id", "", "") \
	X(flag_name, 0, "JVMFlag", "_name", "", "") \
	X(flag_value, 0, "JVMFlag", "_addr", "", "") \
	X(flag_origin, 0, "JVMFlag", "_flags", "", "")

/* X(name, required, type, member): variables of the JVM. */
#define JVM_VARIABLES(X) \
	X(heaps, 1, "CodeCache", "_heaps") \
	X(interpreter, 0, "AbstractInterpreter", "_code") \
	X(threads, 0, "ThreadsSMRSupport", "_java_thread_list") \
	X(threads_linked, 0, "Threads", "_thread_list") \
	X(call_stub_return, 1, "StubRoutines", "_call_stub_return_address") \
	X(major, 1, "Abstract_VM_Version", "_vm_major_version") \
	X(minor, 1, "Abstract_VM_Version", "_vm_minor_version") \
	X(security, 1, "Abstract_VM_Version", "_vm_security_version") \
	X(flags, 0, "JVMFlag", "flags") \
	X(nflags, 0, "JVMFlag", "numFlags")

/* X(name, required, type): sizes of structures. */
#define JVM_SIZES(X) \
	X(const_method, 1, "ConstMethod") \
	X(constants, 1, "ConstantPool") \
	X(block, 1, "HeapBlock") \
	X(pc, 1, "PcDesc") \
	X(flag, 0, "JVMFlag")

struct jvm_member {
	uint32_t at;
	uint8_t width; /* bytes; 0: this version does not have the member */
};

struct jvm_layout {
#define X(name, ...) struct jvm_member name;
	JVM_MEMBERS(X)
#undef X
	struct {
#define X(name, ...) uint64_t name;
		JVM_VARIABLES(X)
	} variable; /* addresses */
	struct {
		JVM_SIZES(X)
#undef X
	} size;
	/* From JDK 20 on, numbers in tables have no bytes of 0. */
	uint32_t excluded;
};

/* A part of the code cache. */
struct jvm_heap {
	uint64_t low, high, segments;
	uint32_t shift;
};

enum { JVM_HEAPS_MAX = 8 };

struct jvm_values_layout;

struct jvm {
	struct runtime runtime; /* first */
	struct object *object;
	uint64_t bias;
	struct jvm_layout layout;
	struct jvm_heap heaps[JVM_HEAPS_MAX];
	uint32_t nheaps;
	struct arena names;
	struct hash methods; /* address of a Method, or JVM_NOW | id: struct jvm_method * */
	struct hash lines;   /* struct jvm_method *, bytecode: line */
	struct hash texts;   /* address of a CodeBlob's name: const char * */
	struct hash threads; /* thread id: address of its JavaThread */
	bool threads_read;
	bool dense;    /* compiled code has a place for each instruction: DebugNonSafepoints */
	uint64_t work; /* bytes of line tables that may still be searched */
	size_t budget; /* bytes of names and tables that may still be read */
	/* private to values.c; NULL: not read */
	const struct jvm_values_layout *values;
};

/* The value of `work` for each stopped process and for each code that is learned. */
enum { JVM_WORK = 1 << 28 };
/* Key of a Method in a process that runs; with its id. */
#define JVM_NOW (1ull << 63)

/* Returns the place of the 16-bit count of uses in a Symbol's first word. Its length was beside it
 * before JDK 12. */
static inline uint32_t jvm_symbol_count(const struct jvm_layout *l)
{
	return l->symbol_length.at == 0 ? 2 : 0;
}

/* --- tables.c --- */
/* What a layout is to have of the tables of libjvm.so. `to` is the offset in it of a struct
 * jvm_member, or of a uint64_t: a variable's address, a structure's size. */
struct jvm_wanted {
	const struct jvm_wanted_member {
		const char *type[2], *member[2]; /* names in other versions */
		uint32_t to;
		bool required;
	} * members;
	const struct jvm_wanted_value {
		const char *type, *member; /* of a size: no member */
		uint32_t to;
		bool required;
	} * variables, *sizes;
	size_t nmembers, nvariables, nsizes;
};
/* Fills a layout of zeros. Returns false when the tables lack a required entry. */
bool jvm_tables_read(struct jvm *j, const struct jvm_wanted *w, void *layout);
/* Takes the layout from the tables of libjvm.so. Returns false when they lack a needed entry. */
bool jvm_layout_read(struct jvm *j, struct jvm_layout *ret);
/* Returns the value of an option of the JVM that is a bool. */
bool jvm_option(const struct jvm *j, const char *name);
/* Returns false when somebody has set the option: by the command line, a file or the JVM itself, or
 * when that is not known. A tracer that writes the value does not count. */
bool jvm_option_is_default(const struct jvm *j, const char *name);
/* Returns the low 32 bits of an option that is a number, 0: there is no such option. */
uint64_t jvm_option_number(const struct jvm *j, const char *name);

/* --- memory.c --- */
bool jvm_word(const struct jvm *j, uint64_t addr, uint64_t *ret);
/* Reads a signed member of the structure at addr. Returns false when it cannot be read or does not
 * exist. */
bool jvm_read(const struct jvm *j, uint64_t addr, struct jvm_member m, int64_t *ret);
/* Reads a pointer or an unsigned number. Returns 0 when it cannot be read. */
uint64_t jvm_get(const struct jvm *j, uint64_t addr, struct jvm_member m);
/* Takes n bytes from the budget of reads. */
bool jvm_afford(struct jvm *j, size_t n);
/* Returns up to max bytes of text, printable, in the names' arena, or NULL when it cannot be
 * read. */
char *jvm_text(struct jvm *j, uint64_t addr, uint32_t n);
/* Reads a number of a compressed table (UNSIGNED5, compressedStream.hpp). Reads 0 behind the
 * end. */
uint32_t jvm_number(uint32_t excluded, const uint8_t *p, uint32_t n, uint32_t *i);

/* --- methods.c --- */
/* A function, read from its Method. */
struct jvm_method {
	uint64_t address;
	const char *function, *file; /* NULL: cannot be read, or not known */
	uint64_t code;               /* its bytecodes */
	uint32_t code_size;
	const uint8_t *lines; /* the table */
	uint32_t nlines;
};
/* Returns NULL when there is no Method, because it does not lead to a class that has its
 * constants. */
const struct jvm_method *jvm_method(struct jvm *j, uint64_t address);
/* The same in a process that runs, in which Methods come and go. */
const struct jvm_method *jvm_method_now(struct jvm *j, uint64_t address);
/* Reads the id of a Method (wire/language.h). */
bool jvm_method_id(const struct jvm *j, uint64_t address, uint64_t *ret);
/* Returns the line of a bytecode, 0: not known. */
uint32_t jvm_line(struct jvm *j, const struct jvm_method *m, int64_t bci);

/* --- blobs.c --- */
enum jvm_kind {
	JVM_COMPILED,    /* an nmethod, also of a function that is native code */
	JVM_INTERPRETER, /* all of the interpreter's code */
	JVM_ROUTINE,     /* has a frame of known size */
	JVM_STUBS,       /* has no frame, or one that rbp links */
};

/* A piece of code in the code cache (CodeBlob). */
struct jvm_blob {
	enum jvm_kind kind;
	uint64_t address, code, end;
	uint64_t frame;    /* bytes of its frame, with the return address; 0: none */
	uint64_t complete; /* address from which on the frame is built */
	const char *name;
};
/* Reads the parts of the code cache again. */
void jvm_heaps_read(struct jvm *j);
/* Returns true when an address lies in the code cache. */
bool jvm_is_code(struct jvm *j, uint64_t addr);
/* Finds the piece of code at an address. Returns false when there is none. */
bool jvm_blob_find(struct jvm *j, uint64_t addr, struct jvm_blob *ret);

/* --- scopes.c --- */
/* A function to which an instruction of compiled code belongs. */
struct jvm_scope {
	uint64_t method;
	int32_t bci;
	bool sure; /* bci belongs to the instruction */
};
enum { JVM_SCOPES_MAX = 256 };
/* Finds the functions that an nmethod executes at an address, innermost first. Returns their
 * number. exact: the address is a return address, for which the table has an entry. For other
 * addresses, finds only the functions that the entries before and behind have in common, unless the
 * JVM keeps an entry for each instruction. */
uint32_t jvm_scopes(struct jvm *j, const struct jvm_blob *b, uint64_t pc, bool exact,
		    struct jvm_scope *ret);
/* Returns the original return address of a frame of b, which the JVM has replaced to deoptimize the
 * frame. */
uint64_t jvm_original_pc(const struct jvm *j, const struct jvm_blob *b, uint64_t pc, uint64_t sp);

/* --- caller.c --- */
/* Goes from a frame of compiled code or a stub to its caller. Returns false when the caller cannot
 * be found. */
bool jvm_caller(struct jvm *j, const struct jvm_blob *b, struct unwind_cursor *c);

/* --- interpreted.c --- */
/* Adds the function that a frame of the interpreter runs and goes to its caller. */
bool jvm_interpreted(struct jvm *j, const struct jvm_blob *b, const struct space_thread *t,
		     struct unwind_cursor *c, runtime_frame_vec *ret);

/* --- jvm_met.c --- */
bool jvm_wire(struct runtime *r, struct wire_language *ret);
const void *jvm_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id);
uint32_t jvm_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
		      struct runtime_frame *ret);

/* --- values.c --- */
enum { JVM_PARAMETERS_MAX = 15 };
/* Kinds of parameters, beside the letters of signatures ('[': any array). */
enum { JVM_STRING = 's', JVM_DIFFERENT = '?' };
/* How references are written in objects: 8 bytes; 4 bytes, shifted, with a base; of ZGC. */
enum jvm_references { JVM_WIDE, JVM_NARROW, JVM_COLOURED, JVM_GENERATIONS };
/* Places of members in a String and in its array. */
struct jvm_string {
	uint8_t value, coder;
	uint8_t length, data;
	enum jvm_references references;
	uint8_t shift; /* of ZGC: the first bit of the colour */
	/* of ZGC: the table of the parts from which objects are moved. With generations: that of
	 * the young one, and how far that of the old one is from it. */
	uint64_t base;
	int64_t old;
	uint64_t good; /* of ZGC with generations: a variable, the colour of now */
	uint8_t part_entries, part_size; /* see wire/java_value.h */
};
/* Reads what the others need, and the place of a signature in a ConstMethod. Returns false when
 * this JVM lacks something. */
bool jvm_values_read(struct jvm *j, struct jvm_string *ret_string, uint32_t *ret_signature);
/* Sets the kinds of the parameters of all methods that are loaded and match the patterns; a class
 * is com/shop/Order. 0: no method has that many. */
void jvm_parameters(struct jvm *j, const char *class, const char *method,
		    char ret[JVM_PARAMETERS_MAX]);

/* --- frames.c --- */
/* Goes through the JVM's threads, THREADS_MAX at most: an array, a linked list in Java 11. */
struct jvm_threads {
	const struct jvm *jvm;
	uint64_t at, left;
};
struct jvm_threads jvm_threads_begin(const struct jvm *j);
/* Returns the next JavaThread, 0 at the end. */
uint64_t jvm_threads_next(struct jvm_threads *t);
bool jvm_step(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
	      runtime_frame_vec *ret);
void jvm_add(struct jvm *j, const struct jvm_method *m, int64_t bci, bool sure,
	     runtime_frame_vec *ret);
/* Returns the JavaThread of a thread, 0: it has none. */
uint64_t jvm_thread(struct jvm *j, uint32_t tid);

#endif
