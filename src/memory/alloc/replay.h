/* A recording's calls, made again with other allocators (`descry malloc replay`).
 *
 * In: a trace. Out: a file of operations, which a process with the allocator plays. It is in
 * memory, or in $TMPDIR or /var/tmp when it takes more than a quarter of the memory that is free.
 * Always true: while a process plays, this folder allocates nothing by malloc(3) besides the
 * operations. Each lane is a thread that makes its calls in the order of the recording. A call on a
 * block follows the call before it on the same block, whichever lanes they are of.
 *
 *	file    struct replay_head, chunks of REPLAY_CHUNK operations
 *	lane    a chunk, of which the last operation is NEXT, which has the number of the lane's next
 *	        chunk, or END
 */
#ifndef DESCRY_MEMORY_ALLOC_REPLAY_H
#define DESCRY_MEMORY_ALLOC_REPLAY_H

#include "memory/alloc/trace.h"

enum replay_kind {
	REPLAY_MALLOC,
	REPLAY_CALLOC,
	REPLAY_ALIGNED,
	REPLAY_REALLOC,
	REPLAY_FREE,
	REPLAY_AT,   /* size: the time of what follows, ns since the recording began */
	REPLAY_WAIT, /* slot: a lane, which must have made `size` calls first */
	REPLAY_NEXT, /* size: the number of the chunk that follows */
	REPLAY_END,
};

enum {
	REPLAY_CHUNK = 4096,
	REPLAY_LANES_MAX = 512,
	REPLAY_STEP = 100000, /* ns between two AT of a lane, at least */
};

struct replay_op {
	uint64_t size;
	uint32_t slot;
	uint8_t kind, align; /* align: of ALIGNED, its logarithm */
	uint16_t unused;
};
_Static_assert(sizeof(struct replay_op) == 16, "an operation");

struct replay_head {
	uint64_t ncalls, nslots, nchunks;
	uint64_t nlanes;
	uint64_t duration;   /* ns */
	uint64_t peak_bytes; /* most bytes that live at one time */
	uint64_t peak_room;  /* most bytes of memory that allocators need for those, about */
	uint64_t skipped;    /* frees of blocks that the recording does not know; lost records */
	uint64_t first[REPLAY_LANES_MAX]; /* of each lane: the number of its first chunk */
};
_Static_assert(sizeof(struct replay_head) % sizeof(struct replay_op) == 0,
	       "operations are aligned");

/* Makes the file of operations. same_threads: a lane for each thread; those that live one after
 * another share one. Otherwise there is one lane. *ret_fd is the caller's. */
struct err *replay_make(struct alloc_trace *t, bool same_threads, struct replay_head *ret,
			int *ret_fd);

/* How a process plays. */
enum replay_mode {
	REPLAY_TIME,  /* writes the first word of each block */
	REPLAY_EMPTY, /* the same without an allocator: what the loop itself takes */
	REPLAY_SPACE, /* writes to every page, and looks at the resident memory now and then */
	REPLAY_EACH,  /* measures each call alone */
};
enum {
	REPLAY_TOUCH = 1,    /* writes to every page, whatever the mode */
	REPLAY_RECORDED = 2, /* no call is made before its time */
};
enum { REPLAY_POINTS = 512 };
struct replay_point {
	uint64_t time; /* ns of the recording */
	uint64_t resident, live;
};
struct replay_result {
	uint64_t ns;        /* CPU time of all lanes in the operations; not of SPACE */
	uint64_t wall;      /* ns from the first to the last */
	uint64_t failed;    /* calls that gave no block */
	uint64_t live_peak; /* SPACE: most live bytes; of several lanes, at a look */
	/* SPACE: resident bytes above those before; sums of `looks` looks */
	uint64_t peak, sum, live_sum, looks;
	uint64_t half, most, p99, p999; /* EACH: ns of a call */
	uint64_t npoints;
	struct replay_point points[REPLAY_POINTS];
	char allocator[128]; /* the file that has malloc() */
};
/* Plays in this process, once. flags: REPLAY_TOUCH, REPLAY_RECORDED. */
struct err *replay_play(int fd, enum replay_mode mode, uint32_t flags, struct replay_result *ret);

/* An allocator by its name or a file. */
struct replay_allocator {
	const char *name;
	const char *path; /* NULL: the C library's; of a name: the file that was found */
};
/* ENOENT: it is not installed; the message names the package. */
struct err *replay_find(const char *name, struct replay_allocator *ret, struct arena *a);
/* The names that replay_find() knows, the C library's first; NULL behind the last. */
extern const char *const replay_names[];

/* What was measured of one allocator, for replay_picture(). */
struct replay_curve {
	const char *name;
	const struct replay_point *points;
	uint64_t npoints;
};
/* replay_picture.c: an SVG of the resident memory over time, with the live bytes of the first. */
struct out;
void replay_picture(const struct replay_curve *v, uint32_t n, const char *title, struct out *o);

#endif
