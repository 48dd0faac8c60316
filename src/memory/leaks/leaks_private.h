/* Shared by the files of this folder. */
#ifndef DESCRY_MEMORY_LEAKS_PRIVATE_H
#define DESCRY_MEMORY_LEAKS_PRIVATE_H

#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"

/* For qsort(3) of struct space_range. */
int ranges_by_start(const void *a, const void *b);

enum { BLOCK_MIN = 16 }; /* bytes: blocks are not smaller, taken all together */

/* Find the blocks of one allocator, each in a file of its name. Return true when the program uses
 * it. */
bool heap_find_glibc(const struct memory_copy *c, struct leaks_heap *h);
bool heap_find_jemalloc(const struct memory_copy *c, struct leaks_heap *h);
bool heap_find_tcmalloc(const struct memory_copy *c, struct leaks_heap *h);
bool heap_find_mimalloc(const struct memory_copy *c, struct leaks_heap *h);

/* --- nonzero_words.c --- */
enum { NONZERO_STEPS_MAX = 1 << 28 }; /* pages and words that are looked at */
struct nonzero {
	const struct memory_copy *c;
	uint64_t *first; /* for each run, the number of its first page */
	uint8_t *pages;  /* whether they are empty */
	uint64_t steps;
};
void nonzero_init(struct nonzero *z, const struct memory_copy *c);
void nonzero_fini(struct nonzero *z);
/* Finds the next word that is not zero, from `from`, a multiple of 8, on. Returns false when there
 * is none before `end`, or too many were looked at. */
bool nonzero_next(struct nonzero *z, uint64_t from, uint64_t end, uint64_t *ret);

/* heap_blocks.c: notes that the heap is not whole. Frees the text. */
void heap_remark(struct leaks_heap *h, char *text);

/* free.c: marks the chunks of thread caches and fast bins, which look as if they were in use. */
void heap_mark_free(const struct memory_copy *c, struct leaks_heap *h, const uint64_t *arenas,
		    uint32_t n);

/* struct malloc_state of glibc 2.27 to 2.41. */
enum {
	ARENA_FASTBINS = 16,
	ARENA_NFASTBINS = 10,
	ARENA_TOP = 96,
	ARENA_BINS = 112,
	ARENA_NBINS = 127,
	ARENA_NEXT = 2160,
	ARENA_SYSTEM_MEM = 2184,
	ARENA_MAX_SYSTEM_MEM = 2192,
	ARENA_SIZE = 2200,
};

/* lost_types.c: gives types to the leaked blocks without one, by the program's DWARF. class_of
 * returns the name of an object's C++ class by its first word, or NULL. */
void leaks_find_types(struct leaks *l, const struct memory_copy *c, struct space *s,
		      const char *(*class_of)(void *arg, uint64_t word), void *arg);

/* The same for all blocks that have no type in ret->of, and lists the variables. */
void leaks_types_by_dwarf(struct leaks *l, const struct memory_copy *c, struct space *s,
			  const char *(*class_of)(void *arg, uint64_t word), void *arg,
			  struct leaks_types *ret);

/* --- mark.c --- */

/* Marks what is reachable, and adds the roots of the rest to l->blocks. */
void leaks_mark(const struct memory_copy *c, struct leaks_heap *h, struct leaks *l);

#endif
