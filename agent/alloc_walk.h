/* The walk up a stack for an allocation (agent/alloc_walk.c), by the tables that the tracer has put
 * into the shared memory.
 *
 * Always true: a walk reads no memory but that of the thread's stack, of which it knows that it is
 * mapped, or by a system call that cannot fault. A frame that the tables do not know ends the walk,
 * and the stack's root has the reason. struct alloc_walk keeps the frames of the last walk, from
 * which the places of the words follow that it read. A new walk that comes to one of these frames
 * stops when all words that led on from there are unchanged, and takes the remaining frames from
 * the last walk. A saved rbp that no frame further out needs may differ.
 */
#ifndef DESCRY_AGENT_ALLOC_WALK_H
#define DESCRY_AGENT_ALLOC_WALK_H

#include <stdbool.h>

#include "agent/alloc_private.h"

typedef uint8_t u8;
typedef int16_t s16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#define INLINE static inline __attribute__((always_inline, unused))
#define CALLBACK static inline __attribute__((always_inline)) long

enum { WALK_RULES = 8192, WALK_READS = 2048 };

/* A frame as the walk comes to it. */
struct walk_frame {
	u64 pc, sp, bp;
	u32 state; /* unwind_state.call and guess, and whether it is not the first */
	u32 reads; /* words in alloc_walk.reads from the outermost frame up to this one, with it */
	u32 node;
	s16 saved;     /* place of the caller's rbp, in words from the CFA */
	u8 own;        /* 1: of the recorder itself: is left out */
	u8 quick;      /* 1: step_quickly() found its caller, and noted no word in reads */
	u8 sets, uses; /* 1: this frame saves rbp; its CFA follows from rbp */
	u8 plain;      /* 1: quick, and no frame further out needs the rbp that it saves */
	u8 needs;      /* 1: this frame, or one further out before rbp is found anew, uses rbp */
};

struct walk_read {
	u64 addr, value;
};

/* Of the walk at hand (wire/step.h). */
struct unwind_state {
	u64 pc, sp, bp;
	u64 start, size, bias;
	u32 pages, first_page, npages;
	u64 n, end;
	u64 call, guess, fresh;
	u64 word, pair[2];
};

/* Of a ring; as many bytes as a thread touches are used. */
struct alloc_walk {
	u64 lo, hi;             /* part of the stack that may be read */
	u64 other_lo, other_hi; /* mapped, and not up to the end of a thread's stack */
	u32 whole;              /* 1: hi is the end of the thread's stack */
	u32 version;            /* of the tables that the rest is from */
	u32 n, end;             /* frames of the walk before, and how it ended */
	u64 wanted;             /* the address for which new tables were wanted last */
	u32 unsure;             /* the walk at hand cannot be used again */
	u32 not_loaded;         /* it has met text that has no tables yet */
	u32 nread;              /* words that the walk at hand has read */
	u32 nnew;               /* its frames */
	u64 rules[WALK_RULES];  /* of addresses that were met; remember_rule() */
	struct walk_frame frames[WIRE_ALLOC_FRAMES]; /* the outermost first */
	struct walk_read reads[WALK_READS];
	/* Of the walk at hand, the innermost first. */
	u64 pcs[WIRE_ALLOC_FRAMES];
	struct walk_frame new[WIRE_ALLOC_FRAMES];
	struct walk_read now[WALK_READS];
};

/* Makes [addr, addr + size) a part of what may be read. Returns false when it cannot. */
int alloc_reach(struct alloc_walk *w, u64 addr, u64 size) HIDDEN;
/* Finds the stack that the stack pointer is on. */
void alloc_find_stack(struct alloc_walk *w, u64 sp) HIDDEN;
/* Reads memory that may be missing. Returns 0 on success. */
int alloc_read_far(u64 *dst, u64 addr, u64 size) HIDDEN;
/* Asks for new tables because an address is in no mapping, or in one without tables. Returns
 * true when there are new ones. */
int alloc_ask_for(struct wire_alloc *m, int listed) HIDDEN;

#endif
