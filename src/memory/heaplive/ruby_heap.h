/* MRI's heap in a copy of a process's memory: pages of slots. Private to this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_RUBY_HEAP_H
#define DESCRY_MEMORY_HEAPLIVE_RUBY_HEAP_H

#include "memory/copy/memory_copy.h"
#include "memory/graph/graph.h"
#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"
#include "program/runtime/ruby/ruby.h"

/* The types that ruby.h does not name. */
enum {
	RUBY_NONE = 0,
	RUBY_OBJECT = 1,
	RUBY_FLOAT = 4,
	RUBY_REGEXP = 6,
	RUBY_HASH = 8,
	RUBY_STRUCT = 9,
	RUBY_BIGNUM = 10,
	RUBY_FILE = 11,
	RUBY_DATA = 12,
	RUBY_MATCH = 13,
	RUBY_COMPLEX = 14,
	RUBY_RATIONAL = 15,
	RUBY_SYMBOL = 20,
	RUBY_NODE = 0x1b,
	RUBY_ICLASS = 0x1c,
	RUBY_ZOMBIE = 0x1d,
	RUBY_MOVED = 0x1e,
	RUBY_TYPES = 32,
	RUBY_USER_SHIFT = 12, /* the flags of a type begin here */
};
#define RUBY_USER(n) (1ull << (RUBY_USER_SHIFT + (n)))

/* A page of slots of one size. */
struct ruby_page {
	uint64_t start, end;  /* addresses of the first slot, and behind the last */
	const uint8_t *bytes; /* of start, in the copy */
	uint32_t slot_size;
};

struct ruby_heap {
	const struct memory_copy *copy;
	const struct ruby_layout *layout;
	VEC(struct ruby_page) pages; /* by address, disjoint */
	uint64_t listed;             /* pages in the collector's list */
	uint64_t list, valid;        /* its address, and how many of its items are pages */
	uint64_t collector;          /* address of its variables */
	uint64_t looked;             /* at items of lists, to find the collector's; see LOOKS_MAX */
	uint64_t slots;
	/* cells: the number + 1 of the page with slots in a piece of memory, by its address; 0:
	 * none. A piece has at most one page. NULL: the pages are too far apart. */
	uint64_t lo, hi;
	uint32_t *cells;
};

/* --- ruby_pages.c --- */
/* Finds the pages of the VM. ENOENT: the collector's list of pages cannot be found. */
struct err *ruby_heap_find(const struct memory_copy *c, const struct ruby *r,
			   struct ruby_heap *ret);
void ruby_heap_fini(struct ruby_heap *h);
/* Returns the bytes of the slot at exactly this address, NULL: there is no slot. */
const uint8_t *ruby_slot(const struct ruby_heap *h, uint64_t addr, uint32_t *ret_size);

static inline uint64_t ruby_slot_word(const uint8_t *slot, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, slot + offset, sizeof(v));
	return v;
}

/* A value that is no object: nil, true, a small number, a symbol of the program's text. */
static inline bool ruby_is_immediate(uint64_t value)
{
	return value & 7 || value < 4096;
}

/* --- ruby_parts.c --- */

/* What a part of an object's memory holds. */
enum ruby_part_kind {
	RUBY_PART_BYTES,     /* no objects */
	RUBY_PART_VALUES,    /* objects, one behind the other */
	RUBY_PART_ITEMS,     /* the same, with an index each */
	RUBY_PART_VARIABLES, /* the same: those of an environment */
	RUBY_PART_IVARS,     /* the same: the object's variables */
	RUBY_PART_TABLE,     /* entries of a st_table: keys and values */
	RUBY_PART_VALUED,    /* entries of a st_table whose values alone are objects */
	RUBY_PART_IDS,       /* entries of a rb_id_table whose values are objects */
	RUBY_PART_CONSTS,    /* ... are structures of constants */
	RUBY_PART_CACHES,    /* ... are structures of methods' caches */
	RUBY_PART_BLOCK,     /* words of which any may be an object */
	RUBY_PART_DEEP,      /* the same, and those of the blocks that it leads to */
};
struct ruby_part {
	enum ruby_part_kind kind;
	uint64_t addr, n; /* n: bytes to look through */
	uint64_t bytes;   /* the object's own */
};
enum { RUBY_PARTS = 16 };
struct ruby_parts {
	struct ruby_part v[RUBY_PARTS];
	uint32_t n;
	/* Words of the slot that may be objects: from the first offset to the second. */
	uint32_t from, to;
	uint32_t weak; /* offset of a word that is a weak reference; 0: none */
};

struct ruby_class {
	uint64_t address, real; /* real: the first class above it that Ruby code sees */
	uint32_t number;        /* of the graph */
	uint32_t nlabels;
	uint32_t *labels; /* of the variables of its objects, by index */
	bool labelled;
	bool unreal; /* no class above it is one that Ruby code sees, so `real` is not set */
	bool of_vm;  /* see ruby_class_of_vm() */
};

struct ruby_reader {
	struct ruby_heap heap;
	struct ruby *ruby;
	const struct memory_copy *copy;
	const struct memory_region *last; /* the region of the last memory() */
	struct graph *graph;
	struct leaks remarks; /* of heap_find() */
	struct leaks_heap blocks;
	bool has_blocks;
	struct space_range transient; /* where items are that malloc(3) has not */
	uint64_t budget;              /* words that may still be looked through */
	uint64_t counts[RUBY_TYPES];
	/* Open addressing by the address of a class; 0: free, else index + 1 of classes. */
	VEC(struct ruby_class) classes;
	uint32_t *class_slots, class_mask;
	VEC(uint32_t) found; /* blocks of an object that are still to be searched */
	struct hash symbols; /* ID: label of its name, once a number is asked for */
};

/* Returns n bytes of the copy, or NULL. */
const uint8_t *ruby_memory(struct ruby_reader *x, uint64_t addr, uint64_t n);
/* Lists the memory of an object beyond its slot. */
void ruby_parts(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size,
		struct ruby_parts *ret);
/* Returns the size of the malloc(3) block at an address, 0: it is none, or its size is not
 * known. */
uint64_t ruby_block_size(struct ruby_reader *x, uint64_t addr);

static inline uint32_t ruby_type(uint64_t flags)
{
	return flags & 0x1f;
}
static inline uint32_t ruby_imemo_kind(uint64_t flags)
{
	return flags >> RUBY_USER_SHIFT & 15;
}

/* --- ruby_classes.c --- */
/* Returns the class of the graph that an object belongs to: its class in Ruby, or a name in
 * brackets for what Ruby code cannot see. */
uint32_t ruby_class_number(struct ruby_reader *x, const uint8_t *slot, uint64_t *ret_real);
/* Returns true for the class of the VM, of Ractors, threads and fibers; real is from
 * ruby_class_number(). */
bool ruby_class_of_vm(struct ruby_reader *x, uint64_t real);
/* Returns the label of the index-th variable of an object of this class. */
uint32_t ruby_ivar_label(struct ruby_reader *x, uint64_t class, uint32_t index);
void ruby_classes_fini(struct ruby_reader *x);

/* --- ruby_edges.c --- */
/* Adds what the object that was added last refers to. */
void ruby_edges(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size,
		uint64_t real, const struct ruby_parts *parts);

/* --- ruby_values.c --- */
/* Adds the text or number that the object is that was added last. */
void ruby_values(struct ruby_reader *x, uint64_t addr, const uint8_t *slot);
/* Adds a value that is no object to the object that was added last: a number, a symbol, nil. */
void ruby_number(struct ruby_reader *x, uint64_t value, uint32_t label);

/* --- ruby_source.c --- */
/* Adds the objects, references and roots. r reads in the copy. */
struct err *ruby_read(const struct memory_copy *c, struct ruby *r, struct graph *g);

#endif
