/* Free room in the chunks.
 *
 * In: ranges that are given back, with the time. Out: addresses (chunk << 16 | index) of a number
 * of words in one chunk.
 * Always true: a range is used again only after it was settled, because walks may still read it for
 * a moment. The ranges do not overlap. */
#ifndef DESCRY_PROGRAM_UNWIND_ROOM_H
#define DESCRY_PROGRAM_UNWIND_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct room_range {
	uint32_t at, n;   /* words; none crosses a chunk's end */
	uint64_t time_ns; /* when it was given back */
};

/* Zero is empty. */
struct room {
	VEC(struct room_range) free;    /* by address; none touches the next but at a chunk's end */
	VEC(struct room_range) pending; /* in the order of their times */
};
void room_fini(struct room *s);
void room_give(struct room *s, uint32_t at, uint32_t n, uint64_t now_ns);
/* Frees the ranges given back until then. */
void room_settle(struct room *s, uint64_t until_ns);
/* Takes n words, the first at a multiple of align. Returns their address, or 0 when there is no
 * such room. */
uint32_t room_take(struct room *s, uint32_t n, uint32_t align);
/* Removes the last free range when it is exactly this one. Returns false when it is another. */
bool room_ends_with(struct room *s, uint32_t at, uint32_t n);

#endif
