/* The file of a program's allocations (`descry malloc record`), written and read.
 *
 * In: events in the order of time. Out: the same events from the file, block by block.
 * Always true: a block is whole or refused; a file that was cut off behind a block is read up to
 * there. The file is untrusted: every number is checked, and nothing is allocated by a size that
 * the file claims.
 *
 *	file    "DESCRYMA", u32 version, u32 0 or ALLOC_UNFINISHED, blocks
 *	block   u32 ALLOC_BLOCK, u32 bytes unpacked, u32 bytes packed, u32 checksum of the unpacked
 *	        bytes, the packed bytes (zstd)
 *
 * Version 2 has blocks of a second kind, ALLOC_CHUNK, which unpack to: u32 ring, u32 0, u64
 * position, u64 sync, and what a thread of the program has written at this position of the ring
 * (wire/alloc.h). Events up to the ticks `sync` are in the blocks before, so a reader merges the
 * rings by ticks up to there. INFO "clock=TICKS,FACTOR": the ticks at time 0, and the nanoseconds
 * of a tick as a fraction of 2^64. Since version 7, "clock=TICKS,FACTOR,SHIFT": a tick in chunks,
 * and of sync, is 1 << SHIFT of these.
 *
 * Version 3 has NODE, and the chunks of threads may have numbers of stacks, which NODEs define.
 *
 * In version 4, chunks may have MAP.
 *
 * Up to version 4, ticks of chunks were in an order in which the events could have happened. Since
 * version 5, an allocation may have earlier ticks than another thread's free of the block before
 * it, and the reader restores the order (trace_merge.c).
 *
 * Up to version 5, the number of a NODE's parent was below its own. Up to version 6, a NODE had no
 * bits in its op, and the number of its parent as it is. Up to version 7, a FRAME had its whole
 * text, and there were no runs.
 *
 * An ALLOC_BLOCK unpacks to entries: u8 op, fields. Numbers are LEB128 (base/bytes.h), signed ones
 * zigzag.
 * Bits of op: 0-3 enum alloc_op; ALLOC_THREAD: the thread's index follows, else it is that of the
 * entry before; ALLOC_STACK: the stack's number follows. Then the time since the entry before, in
 * ns, signed, and:
 *
 *	MALLOC CALLOC    size, address
 *	ALIGNED          alignment, size, address
 *	REALLOC_FROM     address               at the call: the block that it frees or moves
 *	REALLOC          size, address         at its return, of the same thread
 *	FREE             address
 *	LOST             count                 so many events are missing about here
 *	END              count of all events   nothing follows
 *
 * and, without a time: INFO: length, "NAME=VALUE"; NEW_THREAD: its tid; FRAME: length of the rest,
 * so many bytes of the FRAME before begin the text, the rest; NEW_STACK: count, numbers of frames,
 * the innermost first; NODE: number of a stack, parent, frame: the stack consists of the frame
 * and, as its callers, the stack `parent`; frame 0: it is the same as that stack. With ALLOC_NEXT
 * in op, the number is missing: it is that of the block's last NODE, plus 1. With ALLOC_ABOVE, the
 * parent is missing: it is that last NODE. Else the parent is the number minus it, signed. An op
 * with ALLOC_RUN is a run of so many NODEs with both bits, of which each has the frame that the
 * last such NODE behind a NODE with the same frame had. Threads, frames and stacks are numbered
 * from 1 in the order of their entries; stack 0 is none. An address is the difference from the
 * last address of the block: (difference / 16) << 1, signed, when it is a multiple of 16, else
 * difference << 1 | 1. Differences begin anew with each block, numbers do not.
 */
#ifndef DESCRY_MEMORY_ALLOC_TRACE_H
#define DESCRY_MEMORY_ALLOC_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	ALLOC_VERSION = 8,
	ALLOC_IN_ORDER = 4,       /* the last version with ticks in order */
	ALLOC_WIDE_NODES = 6,     /* the last version with all numbers of nodes */
	ALLOC_WHOLE_TEXTS = 7,    /* the last version without runs and parts of texts */
	ALLOC_BLOCK = 0x4b4c4244, /* "DBLK" */
	ALLOC_CHUNK = 0x4b484344, /* "DCHK" */
	ALLOC_CHUNK_HEAD = 24,
	ALLOC_UNFINISHED =
		1, /* the recorder still writes, or was killed: the last block may be cut off */
	ALLOC_BLOCK_BYTES = 256 << 10,
	ALLOC_BLOCK_MAX = 1 << 20, /* unpacked; more is refused */
	ALLOC_TEXT_MAX = 4096,
	ALLOC_FRAMES_MAX = 512, /* of a stack */
	ALLOC_NODES_MAX = 4 << 20,
	ALLOC_NODES_GAP = 65536, /* between the numbers of nodes */
	/* What a definition counts, besides a text's bytes: what a reader needs for it at most. */
	ALLOC_DEFINED = 128,
	ALLOC_DEFINED_THREAD = 256,    /* of a ring */
	ALLOC_DEFINED_FRAME = 8,       /* of a stack, each */
	ALLOC_DEFINED_MAX = 512 << 20, /* of a recording */
};

enum alloc_op {
	ALLOC_MALLOC,
	ALLOC_CALLOC,
	ALLOC_ALIGNED,
	ALLOC_REALLOC_FROM,
	ALLOC_REALLOC,
	ALLOC_FREE,
	ALLOC_LOST,
	ALLOC_END,
	ALLOC_INFO,
	ALLOC_NEW_THREAD,
	ALLOC_FRAME,
	ALLOC_NEW_STACK,
	ALLOC_NODE,
	/* Memory that the program maps itself, in chunks alone; align: enum wire_alloc_map. */
	ALLOC_MAP,
	ALLOC_UNMAP,
	ALLOC_NOPS,
};
enum { ALLOC_OP_MASK = 15, ALLOC_THREAD = 16, ALLOC_STACK = 32 };
/* Of NODE. */
enum { ALLOC_NEXT = 16, ALLOC_ABOVE = 32 };
/* ALLOC_RUN | a number of NODEs - 1 */
enum { ALLOC_RUN = 64, ALLOC_RUN_MAX = 64 };

struct alloc_event {
	enum alloc_op op;
	uint32_t thread, stack; /* from 1; stack 0: none */
	uint64_t time;          /* ns since the recording began */
	uint64_t addr;          /* 0: the call failed */
	uint64_t size;          /* LOST, END: count */
	uint64_t align;
};

/* --- trace_write.c --- */
struct alloc_writer;
/* path: a new file, or one that is replaced. */
struct err *alloc_writer_new(const char *path, struct alloc_writer **ret);
/* Writes to a descriptor, which is the writer's from now on, also on an error. path: for errors. */
struct err *alloc_writer_new_at(int fd, const char *path, struct alloc_writer **ret);
/* Returns a descriptor of its own of what w writes to if that is no regular file, else -1. */
int alloc_writer_device(const struct alloc_writer *w);
void alloc_writer_info(struct alloc_writer *w, const char *name, const char *value);
uint32_t alloc_writer_thread(struct alloc_writer *w, uint32_t tid);
uint32_t alloc_writer_frame(struct alloc_writer *w, const char *text, size_t len);
uint32_t alloc_writer_stack(struct alloc_writer *w, const uint32_t *frames, uint32_t n);
void alloc_writer_node(struct alloc_writer *w, uint32_t stack, uint32_t parent, uint32_t frame);
void alloc_write(struct alloc_writer *w, const struct alloc_event *e);
/* What a thread has written to its ring. */
struct alloc_chunk {
	uint32_t ring;
	uint64_t position, sync;
	const uint8_t *bytes;
	uint32_t n; /* at most WIRE_ALLOC_RING */
};
void alloc_writer_chunk(struct alloc_writer *w, const struct alloc_chunk *c, uint32_t events);
/* Returns true after a write that failed: all further ones do nothing. */
bool alloc_writer_failed(const struct alloc_writer *w);
/* Writes what is held back, so that a reader finds all events so far. */
void alloc_writer_flush(struct alloc_writer *w);
/* Counts so far. */
uint64_t alloc_writer_events(const struct alloc_writer *w);
uint64_t alloc_writer_bytes(const struct alloc_writer *w);
/* Writes the end and frees the writer. Returns the first error of any write: the file then ends
 * before it, and all calls after it did nothing. */
struct err *alloc_writer_end(struct alloc_writer *w);

/* --- trace_read.c --- */
struct alloc_stack {
	uint32_t at, n; /* in alloc_trace.stack_frames */
};
/* A stack that is defined by its callers' stack. It gets an alloc_stack when an event has it. */
struct alloc_node {
	uint32_t parent, frame; /* frame 0: the same as the stack `parent` */
	bool defined;
};
struct alloc_text {
	const char *text; /* NUL-terminated; may hold any other bytes */
	uint32_t len;
};
struct alloc_trace {
	/* What the entries so far define. Index 0 of each is empty. */
	VEC(uint32_t) threads; /* tids */
	VEC(struct alloc_text) frames;
	VEC(struct alloc_stack) stacks;
	VEC(uint32_t) stack_frames;
	VEC(struct alloc_node) nodes; /* by number of the stack */
	VEC(struct alloc_text) infos;
	bool ended;      /* the recording's end was read */
	const char *cut; /* salvaged: where and why the rest was given up; NULL: it was not */
	/* Bytes that a reader may use: half of what the machine has available. A small file can
	 * define any number of things. */
	uint64_t room;
	uint64_t defined; /* ALLOC_DEFINED... of all definitions */
};

/* salvage: a damaged file is read up to the damage. */
struct err *alloc_open(const char *path, bool salvage, struct alloc_trace **ret);
struct err *alloc_open_memory(const void *p, size_t n, const char *name, bool salvage,
			      struct alloc_trace **ret);
void alloc_close(struct alloc_trace *t);
/* Reads the next event. Returns false at the end, or at an error, which is *ret_err. */
bool alloc_next(struct alloc_trace *t, struct alloc_event *ret, struct err **ret_err);
/* Ends the reading, because a reader needs more than `room`. */
struct err *alloc_no_room(struct alloc_trace *t, uint64_t needs);
/* Begins anew. Everything that was read is gone. */
void alloc_rewind(struct alloc_trace *t);
/* Returns an error when the file has changed since alloc_open(): two readings may differ. */
struct err *alloc_unchanged(struct alloc_trace *t);
/* The value of an INFO entry, or NULL. */
const char *alloc_info(const struct alloc_trace *t, const char *name);

#endif
