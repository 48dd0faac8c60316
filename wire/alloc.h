/* The memory that a command shares with `descry malloc record`: agent/alloc.c, which is preloaded
 * into the command, writes events into rings, and src/memory/alloc/shim_drain.c copies them to the
 * file, from which src/memory/alloc/trace_merge.c reads them.
 *
 *	struct wire_alloc       this head
 *	WIRE_ALLOC_RINGS times  WIRE_ALLOC_RING bytes: a thread's events
 *
 * A ring consists of segments. An event lies within one segment: WIRE_ALLOC_SKIP says that the next
 * one begins at the next segment. Fields of an event are numbers in prefix form: the count of
 * trailing zero bits of the first byte, plus 1, is the number of bytes; the value lies above these
 * bits, little-endian. A first byte of 0 is followed by all 8 bytes of the value.
 *
 *	ticks since the thread's event before << 3 | enum wire_alloc_op
 *	MALLOC CALLOC REALLOC   size, address
 *	ALIGNED                 alignment, size, address
 *	FREE REALLOC_FROM       address
 *	OTHER                   enum wire_alloc_other; SKIP: nothing; OPEN: tid, ticks now
 *
 * An address is (its difference from the address before, as zigzag, in units of 16) << 1, or in
 * bytes << 1 | 1. OPEN begins a thread: its first difference is from address 0. Ticks are those of
 * the processor's counter.
 */
#ifndef DESCRY_WIRE_ALLOC_H
#define DESCRY_WIRE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* "pid,descriptor of the shared object,descriptor of the memory" */
#define WIRE_ALLOC_ENV "DESCRY_MALLOC"

enum {
	WIRE_ALLOC_MAGIC = 0x616c6463,
	WIRE_ALLOC_VERSION = 1,
	WIRE_ALLOC_RINGS = 512,
	WIRE_ALLOC_SEGMENT = 64 << 10,
	WIRE_ALLOC_RING = 4 * WIRE_ALLOC_SEGMENT,
	WIRE_ALLOC_EVENT_MAX = 48, /* bytes; the end of a segment has so much room for its last */
};

enum wire_alloc_op {
	WIRE_ALLOC_MALLOC,
	WIRE_ALLOC_FREE,
	WIRE_ALLOC_CALLOC,
	WIRE_ALLOC_REALLOC_FROM,
	WIRE_ALLOC_REALLOC,
	WIRE_ALLOC_ALIGNED,
	WIRE_ALLOC_OTHER = 7,
};
enum wire_alloc_other { WIRE_ALLOC_SKIP, WIRE_ALLOC_OPEN };

/* wire_alloc_ring.head: events written (24 bits, wrapping) above bytes written (40 bits). One store
 * publishes both, so that a process that is killed leaves no event which only one of them has. */
#define WIRE_ALLOC_POSITION(head) ((head)&0xffffffffff)
#define WIRE_ALLOC_COUNT(head) ((uint32_t)((head) >> 40))

struct wire_alloc_ring {
	/* Written by the thread. */
	uint64_t head;
	uint64_t lost;  /* calls without an event */
	uint64_t owner; /* tid, 0: free; a number of changes << 32; the tracer frees it */
	uint64_t unused[5];
	/* Written by the tracer: bytes taken. */
	uint64_t tail;
	uint64_t unused_too[7];
};

struct wire_alloc {
	uint32_t magic, version;
	uint64_t ticks_per_ms;
	/* The tracer holds this robust futex: the kernel sets FUTEX_OWNER_DIED in it. */
	uint32_t tracer;
	uint32_t done;     /* 1: the tracer has ended the recording */
	uint32_t bell;     /* a futex, on which the tracer sleeps: counts the calls for it */
	uint32_t sleeping; /* 1: the tracer sleeps */
	uint32_t drained;  /* a futex, on which a thread waits for room: the tracer's passes */
	uint32_t waiting;  /* threads that do so */
	uint32_t hello;    /* 1: the object was loaded and records */
	uint32_t gave_up; /* the value of drained when a thread last waited in vain, + 1; 0: never */
	uint64_t unheard; /* calls of threads that found no free ring */
	uint32_t forbidden; /* 1: the program has forbidden itself what recording needs, and it ended */
	uint32_t unused[17];
	struct wire_alloc_ring rings[WIRE_ALLOC_RINGS];
};
_Static_assert(sizeof(struct wire_alloc_ring) == 128, "two cache lines");
_Static_assert(offsetof(struct wire_alloc, rings) % 64 == 0, "a cache line");

enum {
	WIRE_ALLOC_HEAD = (sizeof(struct wire_alloc) + 4095) & ~4095,
	WIRE_ALLOC_BYTES = WIRE_ALLOC_HEAD + WIRE_ALLOC_RINGS * WIRE_ALLOC_RING,
};

#endif
