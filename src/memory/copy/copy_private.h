/* Private to this folder: the memory that a copy is written to. */
#ifndef DESCRY_MEMORY_COPY_COPY_PRIVATE_H
#define DESCRY_MEMORY_COPY_COPY_PRIVATE_H

#include "base/sorted.h"
#include "memory/copy/memory_copy.h"

/* --- memory_copy.c --- */
/* Lists the regions that are copied. */
void copy_list_regions(memory_region_vec *ret, const struct mappings *maps);

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
