/* The blocks that are allocated at one moment of a recording: a table by their addresses. */
#ifndef DESCRY_MEMORY_ALLOC_LIVE_BLOCKS_H
#define DESCRY_MEMORY_ALLOC_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct live_block {
	uint64_t addr; /* 0: the slot is empty */
	uint64_t size, time;
	uint32_t stack, thread;
};

/* Zero is empty. */
struct live {
	struct live_block *slots;
	uint32_t cap, n;
};

void live_fini(struct live *l);
/* Returns the bytes that the table has while the next live_put() enlarges it; 0: it does not. */
static inline uint64_t live_growth(const struct live *l)
{
	return (uint64_t)l->n * 4 >= (uint64_t)l->cap * 3 ? 3 * (uint64_t)l->cap * sizeof(*l->slots)
							  : 0;
}
/* Adds a block. addr is not 0. Returns false, with the old block in *ret_old, when one was there,
 * which is replaced. */
bool live_put(struct live *l, const struct live_block *b, struct live_block *ret_old);
/* Takes a block out. Returns false when there is none. */
bool live_take(struct live *l, uint64_t addr, struct live_block *ret);

#endif
