/* The cache lines in which live blocks begin and end, with the threads that allocated these:
 * blocks of two threads in one line slow both down (false sharing). */
#ifndef DESCRY_MEMORY_ALLOC_SHARED_LINES_H
#define DESCRY_MEMORY_ALLOC_SHARED_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct shared_line;

/* Zero is empty. */
struct shared_lines {
	struct shared_line *slots;
	uint32_t cap, n;
};

void shared_lines_fini(struct shared_lines *l);
/* Returns the bytes that the table has while the next block enlarges it; 0: it does not. */
uint64_t shared_lines_growth(const struct shared_lines *l);
/* Adds a block. Returns true when one of its lines has live blocks, and has had one of another
 * thread since it was last empty. */
bool shared_lines_add(struct shared_lines *l, uint64_t addr, uint64_t size, uint32_t thread);
/* Takes out a block that was added. */
void shared_lines_remove(struct shared_lines *l, uint64_t addr, uint64_t size);

#endif
