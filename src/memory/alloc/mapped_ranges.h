/* The memory that a program has mapped itself at one moment of a recording: ranges that do not
 * overlap, in the order of their addresses. A change takes about as long with a million ranges as
 * with a few. */
#ifndef DESCRY_MEMORY_ALLOC_MAPPED_RANGES_H
#define DESCRY_MEMORY_ALLOC_MAPPED_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "wire/alloc.h"

/* Linux allows a process 65,530 mappings, if not told otherwise. */
enum { MAPPED_N = WIRE_ALLOC_NMAPS, MAPPED_MAX = 1 << 20 };

struct mapped_range {
	uint64_t start, end;
	uint8_t kind; /* enum wire_alloc_map */
};

struct mapped_block;

/* Zero is empty. */
struct mapped_ranges {
	VEC(struct mapped_block *) blocks; /* none is empty */
	uint32_t n;                        /* ranges */
	uint64_t bytes[MAPPED_N];          /* by kind */
	uint64_t left_out;                 /* ranges that are not counted, because of MAPPED_MAX */
};

void mapped_ranges_fini(struct mapped_ranges *m);
/* Takes what is mapped there out, or parts of it. */
void mapped_ranges_take(struct mapped_ranges *m, uint64_t start, uint64_t size);
/* Adds a range, in place of what is there. */
void mapped_ranges_put(struct mapped_ranges *m, uint64_t start, uint64_t size, uint8_t kind);
/* Calls fn for each range, in the order of addresses. */
void mapped_ranges_each(const struct mapped_ranges *m,
			void (*fn)(void *arg, const struct mapped_range *r), void *arg);

#endif
