/* A copy of the memory that a program can write or has made, and of its threads' registers, at one
 * moment.
 *
 * In: an address space, of a process that is stopped or of a core file. Out: its bytes, by region,
 * which stay the same when the process goes on.
 * Always true: nothing changes the process. Pages that it has not touched take no memory in the
 * copy. The copy is refused when this machine has no room for it.
 */
#ifndef DESCRY_MEMORY_COPY_MEMORY_COPY_H
#define DESCRY_MEMORY_COPY_MEMORY_COPY_H

#include "program/space/space.h"
#include "program/target/target.h"

enum { MEMORY_PAGE = 4096, MEMORY_WORD = 8 };

/* Adjacent mappings. */
struct memory_region {
	uint64_t start, end;
	uint8_t *bytes;          /* of all of it; zeros where the process has touched nothing */
	struct space_range room; /* the mapping in descry that has `bytes` */
	bool file;               /* a part of it maps a file */
	bool stack;              /* the main thread's */
	bool shared;             /* a part of it is shared with other processes */
	bool heap_file;          /* of ZGC: its file tells what was touched */
};

struct memory_thread {
	uint64_t sp; /* what lies below it is of no function */
	uint64_t fs; /* address of its struct pthread */
};

typedef VEC(struct memory_region) memory_region_vec;

struct memory_copy {
	memory_region_vec regions; /* by address, disjoint */
	space_range_vec runs;      /* the parts that the process has made; by address, disjoint */
	VEC(uint64_t) registers;
	VEC(struct memory_thread) threads;
	uint32_t advised;  /* calls that asked for huge pages */
	uint64_t left_out; /* bytes that memory_copy_files() has not added */
};

typedef VEC(uint64_t) memory_word_vec;

/* Memory for a copy, in pages that are already there: half of the time of a copy goes into the
 * making of pages. Made while the process runs, so that it is stopped for a shorter time. */
struct memory_room;
struct memory_room *memory_room_new(struct space *s);
void memory_room_free(struct memory_room *room); /* NULL is fine */

/* Reads all of it. A process must be stopped meanwhile. */
struct err *memory_copy(struct space *s, struct memory_copy **ret);
/* The same into memory that was made before, as far as it fits: the copy owns what it takes. NULL:
 * there is none. */
struct err *memory_copy_into(struct space *s, struct memory_room *room, struct memory_copy **ret);
/* How a process is stopped for a copy of its memory. Zero: nothing is stopped, as for a core. */
struct memory_stop {
	struct control *control;
	bool fork; /* it is copied by clone(2), and read while it goes on */
	/* Sets `fork` for a process with more bytes of its own in memory, which would be stopped
	 * for long; 0: never. */
	uint64_t fork_above;
	/* set by each copy */
	uint64_t ns;     /* the process was stopped for so long; adds up */
	uint64_t moment; /* CLOCK_MONOTONIC ns of the copy */
	char whole[160]; /* fork: why all of it was read while it was stopped; "": it was not */
};
/* Copies the memory as it is at one moment. s is the space of `control`. The process is read while
 * it is stopped. With `fork` it is copied by clone(2) where that is possible, and goes on while the
 * copy is read. files: as memory_copy_files() does, too. */
struct err *memory_copy_stopped(struct memory_stop *p, struct space *s, bool files,
				struct memory_copy **ret);
/* Adds the pages of private mappings of files that the process has not touched, as far as they
 * have 256 MB, the smallest parts first: a process can map files of any size. A process must be
 * stopped meanwhile. */
struct err *memory_copy_files(struct memory_copy *c, struct space *s);
void memory_copy_free(struct memory_copy *c);

/* Lists the threads' stack pointers, by address. */
void memory_stacks(const struct memory_copy *c, memory_word_vec *ret);
/* Returns true when one of them lies in the region. */
bool memory_has_stack(const memory_word_vec *stacks, const struct memory_region *r);

/* Returns the region that holds addr, or NULL. */
const struct memory_region *memory_region_at(const struct memory_copy *c, uint64_t addr);
/* Returns the address in the copy of n bytes, or NULL when it does not have all of them. */
const void *memory_at(const struct memory_copy *c, uint64_t addr, uint64_t n);
/* The same, quicker for addresses near each other: *last is the region of the call before, NULL at
 * first. */
const void *memory_at_near(const struct memory_copy *c, const struct memory_region **last,
			   uint64_t addr, uint64_t n);
static inline uint64_t memory_word(const struct memory_region *r, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, r->bytes + (addr - r->start), sizeof(v));
	return v;
}

/* Returns a space whose memory is the copy's. Pages that the copy does not have, as those of code
 * and constants, are read in `from`, which gives the mappings, too. Borrows both. */
struct space *memory_copy_space(const struct memory_copy *c, struct space *from);

#endif
