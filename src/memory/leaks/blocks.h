/* The blocks of malloc(3) in a copy of a process's memory.
 *
 * In: a copy. Out: the chunks, by address, and which of them are free.
 * Always true: the memory is untrusted, and every walk ends. Chunks do not overlap.
 */
#ifndef DESCRY_MEMORY_LEAKS_BLOCKS_H
#define DESCRY_MEMORY_LEAKS_BLOCKS_H

#include "base/hash.h"
#include "memory/copy/memory_copy.h"

struct leaks;

/* A chunk of glibc: a header of 16 bytes and the block, whose last word lies in the next chunk's
 * header. Other allocators have no headers: their chunks are plain, nothing but the block. */
struct leaks_chunk {
	uint64_t addr; /* of the header */
	uint64_t bits; /* its size, and CHUNK_* */
};
static const uint64_t CHUNK_FREE = 1ull << 56, CHUNK_REACHED = 1ull << 57,
		      CHUNK_MAPPED = 1ull << 58, CHUNK_SEEN = 1ull << 59, CHUNK_PLAIN = 1ull << 60,
		      CHUNK_SIZE = (1ull << 56) - 1;
enum { CHUNK_HEADER = 16, CHUNK_MIN = 32 };

static inline uint64_t chunk_size(const struct leaks_chunk *c)
{
	return c->bits & CHUNK_SIZE;
}

/* Returns the address of its block. */
static inline uint64_t chunk_block(const struct leaks_chunk *c)
{
	return c->bits & CHUNK_PLAIN ? c->addr : c->addr + CHUNK_HEADER;
}

/* Returns how many bytes the program can use of it. */
static inline uint64_t chunk_usable(const struct leaks_chunk *c)
{
	if (c->bits & CHUNK_PLAIN)
		return chunk_size(c);
	return chunk_size(c) - (c->bits & CHUNK_MAPPED ? CHUNK_HEADER : CHUNK_HEADER - MEMORY_WORD);
}

/* Chunks that lie one behind the other. */
struct leaks_area {
	uint64_t start, end;
	const struct memory_region *region;
	uint32_t first, n; /* of leaks_heap.chunks */
	uint64_t each;     /* size of each chunk; 0: they differ */
	/* bits has a bit for each 16 bytes, set where a chunk begins. rank: the number of chunks
	 * before each word of bits. NULL for a single chunk, or when all have
	 * one size. */
	uint64_t *bits;
	uint32_t *rank;
};

struct leaks_heap {
	VEC(struct leaks_chunk) chunks;
	VEC(struct leaks_area) areas; /* by address, disjoint */
	space_range_vec own;          /* memory that malloc keeps for itself, and free memory */
	memory_word_vec glibc;        /* arenas of glibc */
	struct hash seen;             /* addresses of heaps that were walked */
	uint64_t lo, hi;              /* all areas are between these */
	uint32_t arenas, maps;
	uint64_t most;   /* chunks */
	uint64_t steps;  /* of walks of chains; see STEPS_MAX */
	uint64_t links;  /* of lists of free chunks that were followed; see free.c */
	struct leaks *l; /* takes the remarks */
};

enum { LEAKS_NONE = UINT32_MAX };

/* Finds the arenas and their chunks. */
struct err *heap_find(const struct memory_copy *c, struct leaks_heap *h);
void heap_fini(struct leaks_heap *h);
/* Makes the tables of areas, by which heap_chunk() works. */
void heap_index(struct leaks_heap *h);
/* Returns the index of the chunk whose block has this address, or LEAKS_NONE. */
uint32_t heap_chunk(const struct leaks_heap *h, uint64_t addr);
/* Returns the index of the chunk that begins at this address, or LEAKS_NONE. */
uint32_t heap_chunk_at(const struct leaks_heap *h, uint64_t addr);

/* A search of the words to which the program has a way without the objects of its language. */
struct leaks_seek {
	/* Takes a word of the program's data, stacks, registers, or of a block to which these lead.
	 * `kind` says what leads to it: "native stack". */
	void (*fn)(void *arg, uint64_t word, const char *kind);
	/* In place of fn, when not NULL: also takes the address of the word; 0: a register's. */
	void (*placed)(void *arg, uint64_t at, uint64_t word, const char *kind);
	void *arg;
	const struct space_range *skip; /* memory that is not searched */
	uint32_t nskip;
};
/* Sets CHUNK_REACHED of each block that is searched. Blocks that have it before are not. */
void leaks_seek(const struct memory_copy *c, struct leaks_heap *h, const struct leaks_seek *seek);

#endif
