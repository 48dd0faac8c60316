/* The addresses of the blocks that are allocated: a table of pages, each with a bit for 8 bytes. */
#ifndef DESCRY_MEMORY_ALLOC_BLOCK_SET_H
#define DESCRY_MEMORY_ALLOC_BLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

struct block_bits {
	uint64_t v[8];
};

/* Zero is empty. */
struct block_set {
	uint64_t *pages;         /* numbers, plus 1; 0: the slot is empty */
	struct block_bits *bits; /* of each slot, a cache line */
	uint32_t cap, n;
	uint32_t last; /* the slot that was used last */
};

void block_set_fini(struct block_set *s);
enum { BLOCK_SET_GROWN_MAX = 1 << 28 /* slots of a table that can still be enlarged */ };
/* Returns the bytes that the table has while the next block_set_put() enlarges it; 0: it does not.
 * More than any machine has when the table cannot be enlarged. */
static inline uint64_t block_set_growth(const struct block_set *s)
{
	if ((uint64_t)s->n * 4 < (uint64_t)s->cap * 3)
		return 0;
	return s->cap > BLOCK_SET_GROWN_MAX
		       ? 1ull << 62
		       : 3 * (uint64_t)s->cap * (sizeof(*s->pages) + sizeof(*s->bits));
}
/* Adds a block. Returns false when it was there. */
bool block_set_put(struct block_set *s, uint64_t addr);
/* Takes a block out. Returns false when there is none. */
bool block_set_take(struct block_set *s, uint64_t addr);
/* Has the processor fetch what it needs for a block that will be put or taken soon. */
void block_set_fetch(const struct block_set *s, uint64_t addr);

#endif
