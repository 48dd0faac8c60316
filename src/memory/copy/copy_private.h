/* Private to this folder: the memory that a copy is written to. */
#ifndef DESCRY_MEMORY_COPY_COPY_PRIVATE_H
#define DESCRY_MEMORY_COPY_COPY_PRIVATE_H

#include "base/sorted.h"
#include "memory/copy/memory_copy.h"

/* --- memory_copy.c --- */
/* Lists the regions that are copied. */
void copy_list_regions(memory_region_vec *ret, const struct mappings *maps);

/* Adds the parts of a range that are not among `has`, which are sorted. */
void copy_list_gaps(const space_range_vec *has, struct space_range in, space_range_vec *ret);
/* Orders ranges by their starts, for qsort(3). */
int copy_range_order(const void *a, const void *b);

/* Returns true for memory that may be a heap, or whose words may be pointers into one. Device
 * memory is no heap, and reading it may have effects. java_end: what copy_java_end() returns for
 * the list of mappings. */
bool copy_wants(const struct mapping *m, uint64_t java_end);
/* Reads the mappings and the registers. *ret: the mappings, valid until the next call that reads
 * them. */
struct err *copy_begin(struct memory_copy *c, struct space *s, const struct mappings **ret);
/* Reads the memory, but for that of `kept`, which was read before. The mappings of s are those of
 * the beginning. */
struct err *copy_read(struct memory_copy *c, struct space *s, const space_range_vec *kept,
		      struct memory_room *room);
/* Reads the ranges `kept`, each of which lies in a region. */
struct err *copy_keep(struct memory_copy *c, struct space *s, const space_range_vec *kept);

/* --- copy_shared.c --- */
/* Returns true for a mapping of the heap's file of Java's collector ZGC. */
bool copy_is_java_heap(const struct mapping *m);
/* Returns the end of the addresses at which this file is copied: one of its mappings is enough. */
uint64_t copy_java_end(const struct mappings *maps);
/* Adds the pages of a part of a region that the process has touched. */
struct err *copy_resident(struct space *s, const struct memory_region *r, struct space_range in,
			  space_range_vec *ret);

/* --- copy_gaps.c --- */
/* Cuts the widest parts that the process has not touched out of the regions, until those that stay
 * have at most `most` bytes together. runs: what it has touched. A region that has its memory
 * already stays as it is. */
void copy_cut_gaps(struct memory_copy *c, const space_range_vec *runs, uint64_t most);

/* --- copy_room.c --- */
/* Maps the memory for a region whose touched pages are `runs`, and `slack` bytes of address space
 * more. Returns false with errno when there is none. */
bool copy_room_map(struct memory_region *r, uint64_t slack, const struct space_range *runs,
		   uint32_t n, uint32_t *advised);
void copy_room_unmap(struct memory_region *r);
/* Gives a region the memory that was made for it. Returns false when there is none. */
bool copy_room_take(struct memory_room *room, struct memory_region *r);
/* Returns how many bytes of it are there. */
uint64_t copy_room_populated(const struct memory_room *room);

#endif
