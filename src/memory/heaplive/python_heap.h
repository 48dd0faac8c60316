/* CPython's objects in a copy of a process's memory. Private to this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_PYTHON_HEAP_H
#define DESCRY_MEMORY_HEAPLIVE_PYTHON_HEAP_H

#include "memory/copy/memory_copy.h"
#include "memory/graph/graph.h"
#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"
#include "program/runtime/python/python.h"

/* What the memory of a type's objects is like. */
enum python_kind {
	PYTHON_OTHER,
	PYTHON_PLAIN, /* int, float, bytes: no references */
	PYTHON_STR,
	PYTHON_LIST,
	PYTHON_TUPLE,
	PYTHON_DICT,
	PYTHON_SET,
	PYTHON_WEAK, /* a weak reference */
	PYTHON_A_TYPE,
};

/* A type, or an address that is none. */
struct python_type {
	uint64_t address;
	bool valid;
	enum python_kind kind;
	bool named;
	bool is_float, is_none; /* known once `number` is */
	uint32_t number;        /* class of the graph + 1; 0: not made yet */
	uint64_t flags, basic, item;
};

enum { PYTHON_MANY = 255 };

/* Addresses with a number each: open addressing, 0 is free. */
struct python_set {
	uint64_t *v;
	uint32_t *count;
	uint64_t mask, n;
};

struct python_reader {
	struct python *python;
	struct space *space; /* of the copy */
	const struct memory_copy *copy;
	const struct memory_region *last;
	struct graph *graph;
	struct leaks remarks; /* of heap_find() */
	struct leaks_heap blocks;
	bool has_blocks;
	uint64_t budget; /* words that may still be looked through */
	/* A byte for each word of each region. 0: no object is seen there; else 1 + the number of
	 * references to it that were found, up to PYTHON_MANY. NULL: no byte is set. */
	uint8_t **cells;
	struct python_set many;  /* objects of PYTHON_MANY, with the number of their references */
	uint64_t seen;           /* objects */
	struct python_set pages; /* of the library's regions, with objects of the collector */
	VEC(uint64_t) queue;     /* objects that are seen and not added */
	struct arena arena;      /* has the types */
	VEC(struct python_type *) types;
	uint32_t *type_slots, type_mask;
	VEC(uint32_t) found;         /* blocks of an object that are still to be searched */
	uint64_t tracked, untracked; /* objects that the collector has, and others */
	uint64_t generations[4];     /* objects of each; the last is of gc.freeze() */
	bool torn;                   /* a list of the collector does not close */
};

/* --- python_objects.c --- */
const uint8_t *python_memory(struct python_reader *x, uint64_t addr, uint64_t n);
static inline uint64_t python_at(const uint8_t *p, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, p + offset, sizeof(v));
	return v;
}
/* Returns the type at an address. NULL: there is none. */
struct python_type *python_type(struct python_reader *x, uint64_t addr);
/* Returns the type of the object at an address. NULL: there is no object. */
struct python_type *python_object(struct python_reader *x, uint64_t addr);
/* Adds an object to the queue, when it is new. Counts a reference when another object has it.
 * Returns false when there is no object. */
bool python_see(struct python_reader *x, uint64_t addr, bool counts);
/* Returns true when something that is no object has a reference: more of them are counted in the
 * object than were found. */
bool python_is_held(struct python_reader *x, uint64_t addr);
/* Returns true when the address was added. */
bool python_set_put(struct python_set *s, uint64_t addr);
/* Marks an object as seen. Returns false when it is already, or is not in the copy. */
bool python_mark(struct python_reader *x, uint64_t addr);
void python_objects_fini(struct python_reader *x);
/* Marks the block of malloc(3) around an address as an object's own. */
void python_own(struct python_reader *x, uint64_t addr);

/* --- python_sizes.c --- */
/* Returns sys.getsizeof() of an object, for types that measure themselves as far as it is known. */
uint64_t python_size(struct python_reader *x, uint64_t addr, const struct python_type *t);

/* The keys of a dict. */
struct python_keys {
	uint64_t entries; /* address */
	uint64_t n;       /* entries that are in use or deleted */
	uint64_t room;    /* values of a dict that shares the keys */
	uint32_t entry;   /* bytes of an entry; value is its last word, key the one before */
	uint64_t bytes;
	uint64_t references; /* to the keys */
};
bool python_keys(struct python_reader *x, uint64_t addr, struct python_keys *ret);

/* --- python_refs.c --- */
/* Adds the references of the object that was added last. */
void python_refs(struct python_reader *x, uint64_t addr, const struct python_type *t);

/* --- python_values.c --- */
/* Adds the text or number that the object is that was added last. */
void python_values(struct python_reader *x, uint64_t addr, const struct python_type *t);

/* --- python_source.c --- */
/* Adds the objects, references and roots. p reads in the copy. */
struct err *python_read(const struct memory_copy *c, struct python *p, struct graph *g);

#endif
