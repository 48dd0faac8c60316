/* CPython 2.7 and 3.6 to 3.13: the members of its structures that the walk of frames reads. */
#ifndef DESCRY_PROGRAM_RUNTIME_PYTHON_PYTHON_H
#define DESCRY_PROGRAM_RUNTIME_PYTHON_PYTHON_H

#include "base/hash.h"
#include "program/object/object.h"
#include "program/runtime/runtime.h"

/* The format of a code object's table of lines. */
enum python_lines {
	PYTHON_LNOTAB_UNSIGNED, /* 2.7: co_lnotab, Objects/lnotab_notes.txt */
	PYTHON_LNOTAB,          /* 3.6: lines may go back */
	PYTHON_LINETABLE,       /* 3.10: PEP 626 */
	PYTHON_LOCATIONS,       /* 3.11: Objects/locations.md */
};

/* The kinds of frames and of their links. */
enum python_frames {
	PYTHON_OBJECTS, /* to 3.10: PyFrameObject, one for each run of the loop */
	PYTHON_CFRAMES, /* 3.11: _PyInterpreterFrame; a _PyCFrame for each run of the loop */
	PYTHON_SHIMS,   /* 3.12 on: a _PyInterpreterFrame on the C stack for each run */
};

/* Versions, as python_layout.version has them. */
enum {
	PYTHON_3_9 = 0x0309,
	PYTHON_3_10 = 0x030a,
	PYTHON_3_11 = 0x030b,
	PYTHON_3_12 = 0x030c,
	PYTHON_3_13 = 0x030d,
};

/* PyTypeObject: the same in 3.6 to 3.13. */
enum {
	PYTHON_TYPE_NAME = 24,
	PYTHON_TYPE_BASIC = 32,
	PYTHON_TYPE_ITEM = 40,
	PYTHON_TYPE_FLAGS = 168,
	PYTHON_TYPE_BASE = 256,
	PYTHON_TYPE_DICT_OFFSET = 288,
	PYTHON_TYPE_SIZE = 408,
};
/* Of its flags. */
#define PYTHON_FLAG_INLINE (1ull << 2) /* 3.13: the variables are behind the object */
#define PYTHON_FLAG_VALUES (1ull << 4) /* 3.11 on: the variables are in front of the object */
#define PYTHON_FLAG_HEAP (1ull << 9)
#define PYTHON_FLAG_GC (1ull << 14)
#define PYTHON_FLAG_LONG (1ull << 24)
#define PYTHON_FLAG_LIST (1ull << 25)
#define PYTHON_FLAG_TUPLE (1ull << 26)
#define PYTHON_FLAG_BYTES (1ull << 27)
#define PYTHON_FLAG_STR (1ull << 28)
#define PYTHON_FLAG_DICT (1ull << 29)
#define PYTHON_FLAG_TYPE (1ull << 31)

/* Byte offsets. A member that the version does not have is 0, and so is a first member. */
struct python_layout {
	uint16_t version; /* major << 8 | minor */
	uint8_t lines, frames;
	bool wordcode; /* f_lasti counts in units of two bytes */
	uint8_t shim;  /* frame_owner's value in a shim */
	uint32_t runtime_interpreters;
	uint32_t finalizing; /* so far below that is a word that is 0 until Python ends; 0: ... */
	uint32_t interpreter_next, interpreter_threads;
	uint32_t interpreter_modules; /* the dict sys.modules */
	uint32_t thread_next, thread_interpreter, thread_id;
	uint32_t thread_frame; /* PYTHON_CFRAMES: the pointer to the thread's _PyCFrame */
	uint32_t cframe_frame, cframe_previous;
	uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_is_entry;
	uint32_t code_name, code_file, code_first_line, code_lines;
	uint32_t code_instructions;
	uint32_t object_type;
	uint32_t text_length, text_state, text_ascii, text_other; /* str; bytes in 2.7 */
	uint32_t bytes_length, bytes_data;
};

struct python {
	struct runtime runtime; /* first */
	struct object *object;  /* while it is opened */
	uint64_t bias;
	struct python_layout layout;
	uint64_t interpreters; /* address of the pointer to the first interpreter */
	uint64_t code_type;    /* address of PyCode_Type */
	uint64_t loop, loop_size;
	struct arena names;
	struct hash codes; /* address of a code object -> struct python_code * */
	size_t budget;     /* bytes of names and tables left to read */
};

/* A function, read from its code object. */
/* A place in a table of lines, between two entries. A table has one at its beginning, and then one
 * after at least PYTHON_LINE_MARK bytes: many frames may be in the same long code. */
struct python_line_mark {
	uint32_t at;
	uint32_t end, line; /* of the entry before it: bytes of code */
};
enum { PYTHON_LINE_MARK = 256 };

struct python_code {
	uint64_t address;
	const char *function, *file; /* NULL: unreadable */
	uint32_t first_line;
	const uint8_t *lines; /* the table of lines */
	uint32_t nlines;
	const struct python_line_mark *marks;
	uint32_t nmarks;
};

/* --- layout.c --- */
/* Returns the version's layout, or NULL when it is not known. */
const struct python_layout *python_layout(uint32_t major, uint32_t minor);
/* Returns true when the thread's state leads to a frame by a _PyCFrame: 3.11 and 3.12. */
static inline bool python_by_cframe(const struct python_layout *l)
{
	return l->frames != PYTHON_OBJECTS && l->version < 0x030d;
}
/* Replaces the table's offsets by those that the interpreter publishes in _Py_DebugOffsets, at
 * `runtime`. Versions before 3.13 publish none and keep the table's. Returns false when the
 * published offsets are missing or not valid. */
bool python_published(struct space *s, uint64_t runtime, struct python_layout *l);

/* --- code.c --- */
/* Returns the text of a str, or of a bytes object in 2.7, or NULL when it cannot be read. */
const char *python_text(struct python *p, uint64_t addr);
/* Returns the function of the code object at `address`, or NULL when there is no code object. */
const struct python_code *python_code(struct python *p, uint64_t address);
/* Returns the line of the instruction at byte `at` of the code, or 0 when it has none. */
uint32_t python_line(const struct python *p, const struct python_code *c, uint32_t at);

const void *python_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id);
uint32_t python_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
			 struct runtime_frame *ret);

/* --- lines.c --- */
/* Makes the marks of a table, at most n / PYTHON_LINE_MARK + 1. Returns their number. */
uint32_t python_lines_marks(enum python_lines how, const uint8_t *table, uint32_t n,
			    uint32_t first_line, struct python_line_mark *ret);
uint32_t python_lines_find(enum python_lines how, const uint8_t *table, uint32_t n,
			   const struct python_line_mark *marks, uint32_t nmarks, uint32_t at);

/* --- entries.c --- */
/* A place in the interpreter's loop: link-time address, and the register that then has the frame's
 * address (x86's number). */
struct python_entry {
	uint64_t addr;
	uint8_t frame;
};
enum { PYTHON_ENTRIES_MAX = 8 };
struct python_entries {
	struct python_entry v[PYTHON_ENTRIES_MAX]; /* exactly one of them is passed */
	uint32_t n;
	const struct python_layout *layout;
};
/* Finds the places that are passed whenever a function begins, or a generator goes on. Returns
 * NULL, or the reason why they are not known. */
const char *python_entries(struct object *o, struct python_entries *ret);
/* The same for the end of functions, also by an exception, and for generators that yield. */
const char *python_returns(struct object *o, struct python_entries *ret);
/* Returns true for a version whose places are known. Its own probe function__entry does not exist,
 * or is passed only while the probe line is enabled. */
bool python_has_entries(struct object *o);

/* --- unwound.c --- */
/* Finds the place that is passed when an exception ends a function. Returns false when it is not
 * known. loop: link-time address. */
bool python_unwound(struct object *o, uint64_t loop, uint64_t size, const struct python_layout *l,
		    struct python_entry *ret);

/* --- frames.c --- */
void python_frames(struct runtime *r, const struct space_thread *t, runtime_frame_vec *ret);
/* The same of the thread with this thread_id. */
void python_frames_of(struct python *p, uint64_t id, runtime_frame_vec *ret);
/* Reads function, file and line of a frame. Returns false when it has no code object. */
bool python_frame_at(struct python *p, uint64_t frame, struct runtime_frame *ret);

/* --- tasks.c --- */
struct err *python_tasks(struct runtime *r, struct runtime_tasks *ret);

/* --- allocations.c --- */
/* A place in the code that makes an object: its address is at `moved` behind the value of the
 * register, in x86's order. The object has its type, and no reference yet. */
struct python_allocation {
	uint64_t addr;
	uint8_t object;
	int16_t moved;
};
enum { PYTHON_ALLOCATIONS_MAX = 1024 };
struct python_allocations {
	struct python_allocation v[PYTHON_ALLOCATIONS_MAX];
	uint32_t n;
};
/* Finds them in a file, all addresses as linked. Returns the reason when it does not. */
const char *python_allocations(struct object *o, struct python_allocations *ret);

#endif
