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
enum { LIVE_GROWN_MAX = 1 << 30 /* slots of a table that can still be enlarged */ };
/* Returns the bytes that the table has while the next live_put() enlarges it; 0: it does not. More
 * than any machine has when the table cannot be enlarged. */
static inline uint64_t live_growth(const struct live *l)
{
	if ((uint64_t)l->n * 4 < (uint64_t)l->cap * 3)
		return 0;
	return l->cap > LIVE_GROWN_MAX ? 1ull << 62 : 3 * (uint64_t)l->cap * sizeof(*l->slots);
}
/* Adds a block. addr is not 0. Returns false, with the old block in *ret_old, when one was there,
 * which is replaced. */
bool live_put(struct live *l, const struct live_block *b, struct live_block *ret_old);
/* Has the processor fetch the slot of an address that will be put or taken soon. A table of
 * millions of blocks is not in its caches. */
void live_fetch(const struct live *l, uint64_t addr);
/* Takes a block out. Returns false when there is none. */
bool live_take(struct live *l, uint64_t addr, struct live_block *ret);

#endif
