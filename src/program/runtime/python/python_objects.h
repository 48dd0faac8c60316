/* CPython's objects, where the walk of asyncio's tasks reads them. Private to this folder. */
#ifndef DESCRY_PROGRAM_RUNTIME_PYTHON_PYTHON_OBJECTS_H
#define DESCRY_PROGRAM_RUNTIME_PYTHON_PYTHON_OBJECTS_H

#include "program/runtime/python/python.h"

/* What an object is, by the names of its type and of the types that this is derived from. */
enum python_is {
	PYTHON_IS_OTHER,
	PYTHON_IS_TASK,
	PYTHON_IS_FUTURE,
	PYTHON_IS_FRAMED, /* coroutine, generator, asynchronous generator: has a frame */
	PYTHON_IS_LINK,   /* stands for the object whose address it has first */
	PYTHON_IS_METHOD,
	PYTHON_IS_FUNCTION,
	PYTHON_IS_PARTIAL,
	PYTHON_IS_GROUP, /* asyncio.TaskGroup */
	PYTHON_IS_DICT,
	PYTHON_IS_SET,
	PYTHON_IS_LIST,
	PYTHON_IS_TUPLE,
	PYTHON_IS_STR,
	PYTHON_IS_INT,
	PYTHON_IS_WEAK,
};

/* The members that only the walk of tasks reads: see python_layout. */
struct python_async {
	uint16_t version;
	uint32_t thread_dict, thread_loop; /* one of them; the dict has the loop */
	uint32_t type_keys; /* the names of the variables that its objects have without a dict */
	uint32_t future_state, task_waiter, task_coroutine, task_name, task_size;
	uint32_t coroutine_frame; /* to 3.10 a pointer, else the frame itself */
	uint32_t coroutine_state; /* from 3.11 on: of one byte */
	uint32_t frame_state;     /* 3.10: likewise */
	uint32_t frame_values, frame_depth;
	uint32_t code_bytes; /* to 3.10 */
	uint32_t function_closure;
};

/* A part of the memory, read at once: objects that belong together are near each other. */
enum {
	PYTHON_PART = 4096,
	PYTHON_PARTS = 1024,
	PYTHON_LOOKS = 256, /* at parts: they count as one read of the process */
};
struct python_part {
	uint64_t addr;
	uint32_t n; /* bytes that can be read */
	uint8_t bytes[PYTHON_PART];
};

/* A reader, for one walk of a process that is stopped meanwhile. */
struct python_objects {
	struct python *p;
	const struct python_async *l;
	struct hash kinds;         /* address of a type -> enum python_is */
	struct python_part *parts; /* PYTHON_PARTS; NULL: none is read */
	uint32_t looks;            /* at parts */
};

/* --- objects.c --- */
enum {
	PYTHON_HEAD_WORD = 16, /* the first word behind an object's head */
	PYTHON_NAME_MAX = 64,
};
/* Reads all n bytes, which are less than PYTHON_PART. */
bool python_bytes(struct python_objects *o, uint64_t addr, void *buf, uint32_t n);
bool python_word(struct python_objects *o, uint64_t addr, uint64_t *ret);
void python_reader_fini(struct python_objects *o);
enum python_is python_is(struct python_objects *o, uint64_t object);
/* Reads the name of an object's type. Returns false when it has none. */
bool python_type_name(struct python_objects *o, uint64_t object, char ret[PYTHON_NAME_MAX]);

/* --- items.c --- */
/* The keys and values of a dict, or of an object's variables. */
struct python_items {
	uint64_t entries;
	uint64_t values; /* where they are not in the entries; 0: they are */
	uint32_t n, size;
};
bool python_dict(struct python_objects *o, uint64_t dict, struct python_items *ret);
bool python_variables(struct python_objects *o, uint64_t object, struct python_items *ret);
/* Reads the i-th item. Returns false when it cannot. *ret_value 0: it is no longer in use. */
bool python_item(struct python_objects *o, const struct python_items *items, uint32_t i,
		 uint64_t *ret_key, uint64_t *ret_value);
/* Finds the value that a dict has under a name. Returns false when the dict lacks the name. */
bool python_value(struct python_objects *o, const struct python_items *items, const char *name,
		  uint64_t *ret);
/* Calls fn for each object of a set. */
void python_each_in_set(struct python_objects *o, uint64_t set,
			void (*fn)(void *arg, uint64_t object), void *arg);

/* --- coroutines.c --- */
/* Adds the frames of a coroutine and of all that it awaits, innermost first. *ret_end: the object
 * that the innermost coroutine waits for; 0 when it waits for nothing, or descry does not know.
 * *ret_runs: the address of the outermost coroutine's frame when a thread executes it, else 0; then
 * no frame is added. */
void python_coroutine(struct python_objects *o, uint64_t coroutine, runtime_frame_vec *ret,
		      uint64_t *ret_end, uint64_t *ret_runs);

#endif
