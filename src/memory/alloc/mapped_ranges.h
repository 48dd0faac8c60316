/* The memory that a program has mapped itself at one moment of a recording: ranges that do not
 * overlap, in the order of their addresses. */
#ifndef DESCRY_MEMORY_ALLOC_MAPPED_RANGES_H
#define DESCRY_MEMORY_ALLOC_MAPPED_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "wire/alloc.h"

/* Linux allows a process 65,530 mappings, if not told otherwise. */
enum { MAPPED_N = WIRE_ALLOC_NMAPS, MAPPED_MAX = 1 << 16 };

struct mapped_range {
	uint64_t start, end;
	uint8_t kind; /* enum wire_alloc_map */
};

/* Zero is empty. */
struct mapped_ranges {
	VEC(struct mapped_range) v;
	uint64_t bytes[MAPPED_N]; /* by kind */
};

void mapped_ranges_fini(struct mapped_ranges *m);
/* Takes what is mapped there out, or parts of it. */
void mapped_ranges_take(struct mapped_ranges *m, uint64_t start, uint64_t size);
/* Adds a range, in place of what is there. Beyond MAPPED_MAX ranges, nothing is added. */
void mapped_ranges_put(struct mapped_ranges *m, uint64_t start, uint64_t size, uint8_t kind);

#endif
