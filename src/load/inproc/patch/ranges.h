/* The address ranges of a process that are in use, and gaps between them.
 *
 * In: the process's mappings, in the order of addresses. Out: free places beside a module.
 * Always true: list is sorted by lo. A search costs one look at each range, however many modules
 * the process has and however often they have moved. */
#ifndef DESCRY_LOAD_INPROC_RANGES_H
#define DESCRY_LOAD_INPROC_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct range {
	uint64_t lo, hi;
	bool readable;
};
typedef VEC(struct range) range_vec;
struct ranges {
	range_vec list;
	/* what brk(2) has made, and would lengthen; 0, 0: not known */
	struct range heap;
	/* list and the avoided ranges, sorted by lo; made by the first search */
	range_vec used;
	bool searched;
	uint64_t looks; /* at ranges, by all searches */
};

/* Reads all mappings, in the order of addresses. */
struct err *ranges_read(pid_t pid, struct ranges *ret);
void ranges_fini(struct ranges *r);
/* Returns true when addr is in a range. */
bool ranges_has(const struct ranges *r, uint64_t addr);
/* Returns true when [lo, hi) is free, with a page of distance. */
bool ranges_free(const struct ranges *r, uint64_t lo, uint64_t hi);
/* Makes [lo, hi) a range in use. */
void ranges_take(struct ranges *r, uint64_t lo, uint64_t hi);
/* Excludes [lo, hi) from all searches. Called before the first of them. */
void ranges_avoid(struct ranges *r, uint64_t lo, uint64_t hi);
/* Returns the free place of `size` bytes that is nearest to [lo, hi), fully in reach of it, and
 * leaves the heap as much room as possible: brk(2) fails where something is in its way. 0: none. */
uint64_t ranges_gap(struct ranges *r, uint64_t lo, uint64_t hi, uint64_t size);

#endif
