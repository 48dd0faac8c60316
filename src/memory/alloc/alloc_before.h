/* The blocks that a process has allocated before its recording begins, from its heap.
 *
 * In: a process that runs, with an allocator that src/memory/leaks/ reads. Out: its blocks in use
 * at one moment.
 * Always true: the process is stopped for a copy of its memory, and changed in nothing.
 */
#ifndef DESCRY_MEMORY_ALLOC_ALLOC_BEFORE_H
#define DESCRY_MEMORY_ALLOC_ALLOC_BEFORE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct alloc_before_block {
	uint64_t addr, size; /* what the program can use of it */
};

/* Zero is empty. */
struct alloc_before {
	uint64_t time; /* CLOCK_MONOTONIC, when the process was stopped */
	VEC(struct alloc_before_block) blocks;
};

/* ENOENT: its allocator is another one. */
struct err *alloc_before_read(pid_t pid, struct alloc_before *ret);

#endif
