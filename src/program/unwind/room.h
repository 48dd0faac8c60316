/* Room in the chunks that is free again.
 *
 * In: what is given back, with the time. Out: addresses (chunk << 16 | index) of so many words in
 * one chunk.
 * Always true: nothing is given out before it was settled, for walks may read what was given back a
 * moment ago; the ranges do not overlap.
 */
#ifndef DESCRY_PROGRAM_UNWIND_ROOM_H
#define DESCRY_PROGRAM_UNWIND_ROOM_H

#include <stdint.h>

#include "base/mem.h"

struct room_range {
	uint32_t at, n;   /* words; none crosses a chunk's end */
	uint64_t time_ns; /* when it was given back */
};

/* All 0 at first. */
struct room {
	VEC(struct room_range) free; /* by address; none touches the next, but at a chunk's end */
	VEC(struct room_range) pending; /* in the order of their times */
};
void room_fini(struct room *s);
void room_give(struct room *s, uint32_t at, uint32_t n, uint64_t now_ns);
/* What was given back until then is free. */
void room_settle(struct room *s, uint64_t until_ns);
/* n words, the address of the first a multiple of align; 0: there is no such room. */
uint32_t room_take(struct room *s, uint32_t n, uint32_t align);

#endif
