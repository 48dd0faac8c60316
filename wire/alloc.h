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
 *	MAP                     enum wire_alloc_map, size, address
 *	OTHER                   enum wire_alloc_other; SKIP: nothing; OPEN, STACKS: tid, ticks now
 *
 * An address is (its difference from the address before, as zigzag, in units of 16) << 1, or in
 * bytes << 1 | 1. OPEN begins a thread: its first difference is from address 0. STACKS does the
 * same, and all events of the thread that allocate, and MAP, have one more field: the difference
 * of the stack's number from that before, as zigzag, from 0. Number 0 is no stack. A tick is
 * 1 << WIRE_ALLOC_TICK of those of the processor's counter: about 12 ns, which is less than it
 * takes to hand a block over to another thread. Those of an allocation are read without a fence:
 * at times they are a little earlier than those of another thread's free of the block before it.
 *
 * With stacks, more memory follows, which only they need:
 *
 *	WIRE_ALLOC_CHUNKS times        a chunk of the tables of wire/wire_unwind.h, written by the tracer
 *	WIRE_ALLOC_NODES times         struct wire_alloc_node
 *	WIRE_ALLOC_FAR times           uint32_t: number of a node; 0: free. Of the command alone
 *	WIRE_ALLOC_FARTHEST times      the same
 *
 * Each process of a recording has such memory of its own.
 *
 * A stack's number is that of a node. Its parent is the caller's frame; the outermost frame's
 * parent is a root, which tells how the walk ended. A thread fills a node before it publishes an
 * event with it. Numbers are given in sequence, from 1.
 */
#ifndef DESCRY_WIRE_ALLOC_H
#define DESCRY_WIRE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_unwind.h"

/* "D,P,T,N,V,I,A,E": D: the descriptor of the shared object in this process, 0: it has none. T:
 * that of process P, the tracer; V and I are its device and inode. The tracer's socket has the
 * abstract address WIRE_ALLOC_SOCKET followed by N. A is the secret of hellos, and E that of
 * answers. All are decimal. */
#define WIRE_ALLOC_ENV "DESCRY_MALLOC"
#define WIRE_ALLOC_SOCKET "descry-malloc-"

enum {
	WIRE_ALLOC_MAGIC = 0x616c6463,
	WIRE_ALLOC_VERSION = 8,
	WIRE_ALLOC_RINGS = 512,
	WIRE_ALLOC_SEGMENT = 64 << 10,
	WIRE_ALLOC_RING = 4 * WIRE_ALLOC_SEGMENT,
	WIRE_ALLOC_TICK = 5,
	WIRE_ALLOC_EVENT_MAX = 48, /* bytes; the end of a segment has so much room for its last */
};

enum wire_alloc_op {
	WIRE_ALLOC_MALLOC,
	WIRE_ALLOC_FREE,
	WIRE_ALLOC_CALLOC,
	WIRE_ALLOC_REALLOC_FROM,
	WIRE_ALLOC_REALLOC,
	WIRE_ALLOC_ALIGNED,
	WIRE_ALLOC_MAP, /* memory that the program maps itself, by mmap(2) or brk(2) */
	WIRE_ALLOC_OTHER,
};
enum wire_alloc_map {
	WIRE_ALLOC_UNMAPPED,
	WIRE_ALLOC_ANONYMOUS,
	WIRE_ALLOC_RESERVED, /* anonymous, without access */
	WIRE_ALLOC_MAPPED_FILE,
	WIRE_ALLOC_NMAPS,
};
enum wire_alloc_other { WIRE_ALLOC_SKIP, WIRE_ALLOC_OPEN, WIRE_ALLOC_STACKS };

/* wire_alloc_ring.head: events written (24 bits, wrapping) above bytes written (40 bits). One store
 * publishes both, so that a process that is killed leaves no event which only one of them has. */
#define WIRE_ALLOC_POSITION(head) ((head)&0xffffffffff)
#define WIRE_ALLOC_COUNT(head) ((uint32_t)((head) >> 40))

/* A process sends a hello to the tracer's socket: when it begins, and when it was forked, before
 * its first event. The answer has the descriptors of memory of its own, of the lobby and of the
 * life, or none when it will not be recorded. */
struct wire_alloc_hello {
	uint32_t magic, kind; /* enum wire_alloc_kind */
	uint64_t secret;
};
enum wire_alloc_kind { WIRE_ALLOC_BEGINS, WIRE_ALLOC_FORKED };
struct wire_alloc_answer {
	uint32_t magic, unused;
	uint64_t bytes; /* of the memory */
	uint64_t proof; /* the secret of answers: when the tracer has ended, anyone may take its address */
};

/* What the processes of a recording believe. They map it read-only, and the file is sealed
 * (F_SEAL_FUTURE_WRITE), so only the tracer writes it. */
struct wire_alloc_life {
	/* 1: forked children and executed programs are recorded, too; 0 also when the tracer has
	 * ended the recording */
	uint32_t follow;
	uint32_t unused;
	uint64_t proc;   /* st_dev of the /proc in which the tracer has its number */
	uint32_t tracer; /* a robust futex, as that of struct wire_alloc */
	uint32_t unused_too[11];
};
_Static_assert(sizeof(struct wire_alloc_life) == 64, "a cache line");

/* A page that all processes of a recording and the tracer share. Each of them may write it, also
 * one that has other rights by now, so no process decides by it whom it asks or what it loads. */
struct wire_alloc_lobby {
	uint32_t bell;     /* a futex, on which the tracer sleeps: counts the calls for it */
	uint32_t sleeping; /* 1: the tracer sleeps */
	uint32_t forks;    /* counts the children that were forked */
	uint32_t executed; /* counts the programs that were executed, and got the variables */
	uint32_t refused;  /* counts the children and programs that could not be recorded */
	uint32_t unused[11];
};
_Static_assert(sizeof(struct wire_alloc_lobby) == 64, "a cache line");

struct wire_alloc_ring {
	/* Written by the thread. */
	uint64_t head;
	uint64_t lost;  /* calls without an event */
	uint64_t owner; /* tid, 0: free; a number of changes << 32; the tracer frees it */
	uint64_t early; /* stacks that end before the thread's first frame */
	uint64_t bare;  /* allocations without a stack: no more nodes */
	uint64_t unused[3];
	/* Written by the tracer: bytes taken. */
	uint64_t tail;
	uint64_t unused_too[7];
};

/* A request for the name of a function of an interpreted language, as struct wire_unwind_ask.
 * Thread and tracer find it by its ticket, of which each request has its own, from 1. */
struct wire_alloc_name {
	uint64_t code, entry, id;
	uint32_t ticket; /* is written last */
	uint32_t unused;
};
enum { WIRE_ALLOC_NAMES = 64 };

struct wire_alloc {
	uint32_t magic, version;
	uint64_t ticks_per_ms;
	/* The tracer holds this robust futex: the kernel sets FUTEX_OWNER_DIED in it. */
	uint32_t tracer;
	uint32_t done; /* 1: the tracer has ended the recording */
	uint32_t own;  /* 1: the program has an allocator of its own, which cannot be recorded */
	uint32_t unused_too;
	uint32_t drained; /* a futex, on which a thread waits for room: the tracer's passes */
	uint32_t waiting; /* threads that do so */
	uint32_t hello;   /* 1: the object was loaded and records */
	uint32_t gave_up; /* the value of drained when a thread last waited in vain, + 1; 0: never */
	uint64_t unheard; /* calls of threads that found no free ring */
	uint32_t forbidden; /* 1: the program has forbidden itself what recording needs, and it ended */
	/* Of stacks. */
	uint32_t depth;    /* most frames of a stack; 0: no stacks */
	uint32_t asked;    /* counts the requests to read the mappings again */
	uint32_t served;   /* a futex: the request that the tracer has answered last */
	uint32_t tables;   /* their version; odd: they are being changed */
	uint32_t mappings; /* address of struct wire_unwind_mapping[nmappings] in the tables */
	uint32_t nmappings;
	uint32_t epoch;     /* changes when text was unloaded, where other text may come */
	uint32_t nnodes;    /* numbers taken; may be more than there are nodes */
	uint32_t no_stacks; /* 1: the process has no memory for walks */
	uint32_t sample;    /* stacks are those of one allocation in so many; 0: of all */
	/* Of an interpreter whose frames walks find (wire/language.h). */
	uint32_t language; /* address of its struct wire_language in the tables; 0: none */
	uint64_t loop,
		loop_size;     /* where its loop is: a stack without that has none of its frames */
	uint32_t pid;          /* of the process, as the tracer sees it: ids have it */
	uint32_t names_asked;  /* tickets given out */
	uint32_t names_served; /* a futex: the ticket that the tracer has answered last */
	uint32_t names_known; /* 1: the tracer has read a name, so the places of members are right */
	uint32_t names_gave_up; /* 1: the process walks no frames of the language any more */
	uint32_t unused[13];
	struct wire_alloc_name names[WIRE_ALLOC_NAMES];
	struct wire_alloc_ring rings[WIRE_ALLOC_RINGS];
};
_Static_assert(__builtin_offsetof(struct wire_alloc, tracer) ==
		       __builtin_offsetof(struct wire_alloc_life, tracer),
	       "the kernel looks for all robust futexes of a thread at one offset");
_Static_assert(sizeof(struct wire_alloc_ring) == 128, "two cache lines");
_Static_assert(offsetof(struct wire_alloc, rings) % 64 == 0, "a cache line");

enum {
	WIRE_ALLOC_HEAD = (sizeof(struct wire_alloc) + 4095) & ~4095,
	WIRE_ALLOC_BYTES = WIRE_ALLOC_HEAD + WIRE_ALLOC_RINGS * WIRE_ALLOC_RING,
};

enum { WIRE_ALLOC_NEAR = 4 };
struct wire_alloc_node {
	uint64_t pc; /* a return address; of a root: WIRE_ALLOC_ROOT() */
	uint32_t parent;
	uint32_t filled;                /* 1: the two are written */
	uint32_t near[WIRE_ALLOC_NEAR]; /* of the command alone: nodes whose parent this is */
};
_Static_assert(sizeof(struct wire_alloc_node) == 32, "two to a cache line");

#define WIRE_ALLOC_ROOT(end, epoch) ((uint64_t)(epoch) << 8 | (end))
/* Frames of an interpreted language are nodes of a tree of their own: its root has no parent and
 * WIRE_ALLOC_PAIR(0), the others have a word of wire/language.h as their pc. A stack with such
 * frames is a node whose parent is the native stack, with the number of the innermost of them. */
#define WIRE_ALLOC_PAIR(node) (1ull << 62 | (node))
#define WIRE_ALLOC_IS_PAIR(pc) ((pc) >> 62 == 1)
#define WIRE_ALLOC_PAIRED(pc) ((uint32_t)(pc))
enum {
	WIRE_ALLOC_CHUNKS = 512,
	WIRE_ALLOC_NODES = 2 << 20,
	WIRE_ALLOC_FAR = 256 << 10,
	WIRE_ALLOC_FARTHEST = 2 << 20,
	WIRE_ALLOC_FRAMES = 512, /* the largest depth */
	WIRE_ALLOC_CHUNK_BYTES = WIRE_UNWIND_CHUNK_WORDS * 4,
	/* Offsets in the memory that follows. */
	WIRE_ALLOC_NODES_AT = WIRE_ALLOC_CHUNKS * WIRE_ALLOC_CHUNK_BYTES,
	WIRE_ALLOC_FAR_AT = WIRE_ALLOC_NODES_AT + WIRE_ALLOC_NODES * 32,
	WIRE_ALLOC_STACK_BYTES = WIRE_ALLOC_FAR_AT + (WIRE_ALLOC_FAR + WIRE_ALLOC_FARTHEST) * 4,
};

#endif
