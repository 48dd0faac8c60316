/* V8's heap in a copy of a process's memory: pages of objects. Private to this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_V8_HEAP_H
#define DESCRY_MEMORY_HEAPLIVE_V8_HEAP_H

#include "memory/copy/memory_copy.h"
#include "memory/graph/graph.h"
#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"
#include "program/runtime/v8/v8.h"
#include "wire/language.h"

enum {
	V8_PAGE = 1 << 18, /* pages begin at multiples of it; large objects make larger pages */
	V8_TAG = 1,        /* of a pointer to an object */
	V8_MAP_SIZE = 72,  /* bytes of a Map that are read */
	V8_WEAK_TAG = 2,   /* of a weak one, too */
	V8_FUNCTIONS = WIRE_V8_FUNCTIONS,
};

/* The numbers of a version's heap that are not published. */
struct v8_heap_version {
	int32_t major, minor;
	/* The header of a page: indexes of words. The word `own` is the header's address, 0: there
	 * is none. `apart`: the header lies elsewhere; the page has the flags and its address. */
	bool apart;
	uint8_t flags, own, size, heap, area_start, area_end;
	uint8_t owner;  /* 0: none */
	uint32_t large; /* bit of the flags: the page has one object */
	/* Instance types; 0: the version has none. */
	uint16_t arrays, arrays_end; /* FixedArray and its kin */
	uint16_t byte_array, bytecodes, doubles, sloppy, external_pointers, trusted_bytes;
	uint16_t more_arrays[7][2]; /* type; offset of its first item */
	uint16_t more_weak[2];
	uint16_t contexts;    /* the first; there are ten */
	uint16_t descriptors; /* DescriptorArray, then StrongDescriptorArray */
	uint16_t weak_arrays, weak_arrays_end, weak_list, embedder, filler, free_space;
	uint16_t properties, feedback, stream, map, weak_cell, weak_ref, function_template;
	uint16_t receivers;     /* JSProxy, then three more */
	uint32_t free_unit;     /* bytes in which the size of free space is given */
	uint32_t feedback_data; /* offset of the slots of a FeedbackVector */
	uint32_t stream_size;   /* offset of the body's size in code; 0: in its Code */
};

enum {
	V8_FROM_PAGE = 1 << 3, /* what the collector has left behind */
	V8_TO_PAGE = 1 << 4,   /* of young objects */
};

/* A page, and the part of it that has objects. */
struct v8_page {
	uint64_t base, start, end;
	uint64_t header; /* address of its header */
	uint64_t heap;   /* 0: of objects that never change */
	uint64_t owner;
	uint32_t flags;
	bool large, unused;
	const uint8_t *bytes; /* of start */
	/* A bit for each word of the first V8_PAGE bytes behind start, where an object begins. NULL
	 * when objects are counted only. */
	uint64_t *starts;
};

/* The free part of a piece of memory in which objects are made. */
struct v8_free_part {
	uint64_t top, limit;
};

/* How the size of an object follows from its first words. */
enum v8_sizing {
	V8_FIXED,
	V8_SMALL_WORDS, /* length as a small integer at 8: words behind `size` bytes */
	V8_SMALL_BYTES,
	V8_STRING_BYTES, /* length of 4 bytes at 12 */
	V8_STRING_PAIRS,
	V8_DESCRIPTORS,
	V8_PROPERTIES,
	V8_SLOTS,
	V8_DIGITS,
	V8_CODE,
	V8_STREAM,
	V8_GIVEN,    /* in bytes, as a small integer at 8 */
	V8_SEARCHED, /* up to the next word that is a Map */
};

/* What an object is called when no class of JavaScript has made it. */
enum v8_group {
	V8_GROUP_OBJECT,
	V8_GROUP_GLOBAL,
	V8_GROUP_STRING,
	V8_GROUP_CONCATENATED,
	V8_GROUP_SLICED,
	V8_GROUP_SYMBOL,
	V8_GROUP_BIG_INT,
	V8_GROUP_NUMBER,
	V8_GROUP_ARRAY,
	V8_GROUP_CODE,
	V8_GROUP_SHAPE,
	V8_GROUP_CONTEXT,
	V8_GROUP_NATIVE_CONTEXT,
	V8_GROUP_SYSTEM,
	V8_GROUPS,
};

/* What an object refers to. */
enum v8_holds {
	V8_NOTHING,    /* but its Map */
	V8_WORDS,      /* each word that is a pointer */
	V8_ITEMS,      /* the same, with an index from `size` on */
	V8_HEAD_WORDS, /* those before `size` */
	V8_STRING_PARTS,
	V8_OBJECT, /* a JavaScript object: named members */
	V8_CONTEXT,
	V8_NAMES,     /* a dictionary by names */
	V8_CELLS,     /* one of the global variables, in cells that have their names */
	V8_EPHEMERON, /* a value for each key, as long as the key lives */
	V8_WEAKLY,    /* words, of which the first is weak */
	V8_IS_FILLER, /* no object */
};

struct v8_map {
	uint64_t address; /* with the tag */
	uint32_t class;   /* of the graph, + 1; 0: not known yet */
	uint32_t size;    /* of an object, or of its part before the items */
	uint16_t type;
	uint8_t sizing, holds, group;
	bool closure; /* each object has a class of its own: that of its function */
	bool laid_out;
	bool dictionary;          /* the objects have a dictionary of their properties */
	uint32_t first, nmembers; /* of v8_reader.members */
	uint32_t members_end;     /* where the members of `object` begin */
	uint64_t n, bytes;        /* counted */
};

/* A named member of JavaScript objects. */
struct v8_member_at {
	uint32_t label;
	uint32_t at; /* offset in the object, or index of its PropertyArray */
	bool outside;
};

/* The name of a property that is looked for. */
struct v8_name {
	const char *text;
	bool symbol;
	uint64_t address; /* 0: not met yet */
};

/* The memory of an array buffer. */
struct v8_store {
	uint64_t addr, bytes;
};

struct v8_reader {
	struct v8 *v8;
	const struct memory_copy *copy;
	const struct memory_region *last;
	const struct v8_heap_version *version;
	struct graph *graph;
	VEC(struct v8_page) pages;       /* by address */
	uint32_t *page_slots, page_mask; /* open addressing by address; index + 1 */
	VEC(struct v8_free_part) frees;  /* by top, disjoint */
	VEC(uint64_t) heaps;
	VEC(struct v8_map) maps;
	uint32_t *map_slots, map_mask;
	VEC(struct v8_member_at) members;
	struct hash names; /* name of a class: class + 1 */
	uint32_t nnames;
	struct hash closures; /* address of a SharedFunctionInfo: class */
	struct hash labels;   /* pointer to the text of a string or symbol: label */
	struct v8_name constructor, string_tag;
	struct leaks remarks;
	struct leaks_heap blocks;
	bool has_blocks;
	VEC(struct v8_store) stores;
	bool labelled;
	uint32_t label_map, label_properties, label_elements, label_shared, label_context;
	uint64_t walk;   /* bytes of pages that may still be walked over */
	uint64_t holds;  /* roots that may still be added */
	uint64_t words;  /* that may still be searched for roots */
	uint64_t budget; /* words that may still be looked at beyond each object's own */
	uint64_t objects, skipped, outside;
};

static inline uint64_t v8_at(const uint8_t *p, uint64_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}
static inline uint32_t v8_at4(const uint8_t *p, uint64_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

/* --- v8_versions.c --- */
/* Returns NULL when the heap of this version is not known. */
const struct v8_heap_version *v8_heap_version_find(int32_t major, int32_t minor);
/* Says how large the objects of a type are, and what they hold. `words`: the size that their Map
 * gives, 0: it varies. */
void v8_type_learn(const struct v8_reader *x, struct v8_map *m, uint32_t words);
/* Returns true for the types of JavaScript's objects. */
bool v8_is_receiver(const struct v8_reader *x, uint32_t type);

/* --- v8_pages.c --- */
/* Returns the bytes at an address, and how many follow in one piece. */
const uint8_t *v8_memory(struct v8_reader *x, uint64_t addr, uint64_t *ret_n);
/* ENOENT: there are no pages. */
struct err *v8_pages_find(struct v8_reader *x);
/* Returns the page of an object, NULL: there is none. */
struct v8_page *v8_page_of(const struct v8_reader *x, uint64_t addr);
/* Returns the bytes of an object by its pointer: at least n. NULL: it is none. */
const uint8_t *v8_object(const struct v8_reader *x, uint64_t pointer, uint64_t n);

/* --- v8_maps.c --- */
/* Returns the Map that a pointer leads to, NULL: it is none. Valid until the next call. */
struct v8_map *v8_map_at(struct v8_reader *x, uint64_t pointer);
/* Returns the size of an object, 0: it is none. most: bytes that it can have. */
uint64_t v8_size(struct v8_reader *x, const struct v8_map *m, const uint8_t *p, uint64_t most);

/* --- v8_classes.c --- */
/* Returns the class of an object. map: index of v8_reader.maps. */
uint32_t v8_class(struct v8_reader *x, uint32_t map, uint64_t addr, const uint8_t *p,
		  uint64_t size);
/* Returns the class of this name. */
uint32_t v8_class_named(struct v8_reader *x, const char *name);

/* --- v8_objects.c --- */
void v8_objects_add(struct v8_reader *x);
/* Notes the memory of an array buffer. Returns its address, 0: it has none. */
uint64_t v8_buffer_note(struct v8_reader *x, const uint8_t *p, uint64_t size);
/* Returns true when an object begins there. */
bool v8_is_object(const struct v8_reader *x, uint64_t pointer);

/* --- v8_edges.c --- */
/* Adds what the object that was added last refers to. map: index of v8_reader.maps. */
void v8_edges(struct v8_reader *x, const uint8_t *p, uint64_t size, uint32_t map);

/* --- v8_values.c --- */
/* Adds the text or number that the object is that was added last. */
void v8_values(struct v8_reader *x, const struct v8_map *m, uint64_t addr, const uint8_t *p,
	       uint64_t size);

/* --- v8_roots.c --- */
void v8_roots_add(struct v8_reader *x);

/* --- v8_source.c --- */
struct err *v8_read(struct v8_reader *x);
void v8_reader_fini(struct v8_reader *x);

#endif
