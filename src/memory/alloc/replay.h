/* A recording's calls, made again with other allocators (`descry malloc replay`).
 *
 * In: a trace. Out: a memory file of operations, which a process with the allocator plays.
 * Always true: while a process plays, this folder allocates nothing by malloc(3) besides the
 * operations. One thread makes all calls, in the order of the recording.
 */
#ifndef DESCRY_MEMORY_ALLOC_REPLAY_H
#define DESCRY_MEMORY_ALLOC_REPLAY_H

#include "memory/alloc/trace.h"

enum replay_kind { REPLAY_MALLOC, REPLAY_CALLOC, REPLAY_ALIGNED, REPLAY_REALLOC, REPLAY_FREE };

/* In the memory file: struct replay_head, then the operations. */
struct replay_op {
	uint64_t size;
	uint32_t slot;
	uint8_t kind, align; /* align: of ALIGNED, its logarithm */
	uint16_t unused;
};
_Static_assert(sizeof(struct replay_op) == 16, "an operation");

struct replay_head {
	uint64_t nops, nslots;
	uint64_t peak_bytes; /* most bytes that live at one time */
	uint64_t peak_room;  /* most bytes of memory that allocators need for those, about */
	uint64_t skipped;    /* frees of blocks that the recording does not know; lost records */
};

/* Makes the memory file. *ret_fd is the caller's. */
struct err *replay_make(struct alloc_trace *t, struct replay_head *ret, int *ret_fd);

/* How a process plays. */
enum replay_mode {
	REPLAY_TIME,  /* writes the first word of each block */
	REPLAY_EMPTY, /* the same without an allocator: what the loop itself takes */
	REPLAY_SPACE, /* writes to every page, and looks at the resident memory now and then */
};
struct replay_result {
	uint64_t ns;        /* CPU time of the thread in all operations; not of SPACE */
	uint64_t failed;    /* calls that gave no block */
	uint64_t peak, sum; /* SPACE: resident bytes above those before; sum of `looks` looks */
	uint64_t looks;
	char allocator[128]; /* the file that has malloc() */
};
/* Plays in this process, once. */
struct err *replay_play(int fd, enum replay_mode mode, struct replay_result *ret);

/* An allocator by its name or a file. */
struct replay_allocator {
	const char *name;
	const char *path; /* NULL: the C library's; of a name: the file that was found */
};
/* ENOENT: it is not installed; the message names the package. */
struct err *replay_find(const char *name, struct replay_allocator *ret, struct arena *a);

#endif
