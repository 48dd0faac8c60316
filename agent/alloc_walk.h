/* The walk up a stack for an allocation (agent/alloc_walk.c), by the tables that the tracer has put
 * into the shared memory.
 *
 * Always true: a walk of native frames reads no memory but that of the thread's stack, of which
 * it knows that it is mapped, or by a system call that cannot fault. A frame that the tables do not
 * know ends the walk, and the stack's root has the reason. struct alloc_walk keeps the frames of
 * the last walk, from which the places of the words follow that it read. A new walk that comes to
 * one of these frames stops when all words that led on from there are unchanged, and takes the
 * remaining frames from the last walk. A saved rbp that no frame further out needs may differ.
 * Frames of Python and Ruby are walked in addition (alloc_language.c) where the native stack has
 * one of the interpreter's loop.
 */
#ifndef DESCRY_AGENT_ALLOC_WALK_H
#define DESCRY_AGENT_ALLOC_WALK_H

#include <stdbool.h>

#include "agent/alloc_private.h"
#include "wire/language.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#define INLINE static inline __attribute__((always_inline, unused))
#define CALLBACK static inline __attribute__((always_inline)) long

enum {
	WALK_RULES = 8192,
	WALK_READS = 2048,
	LANGUAGE_FRAMES = 160,
	LANGUAGE_READS = 28, /* for a frame */
	LANGUAGE_MET = 1 << 16,
	LOOP_HERE = 1,    /* a frame is one of the interpreter's loop */
	LOOP_PERHAPS = 2, /* frames are missing, which may be */
};

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
	u8 needs;      /* 1: this frame, or one further out before rbp is found anew, uses rbp */
	u8 loops;      /* of this frame and those further out: LOOP_... */
};

struct walk_read {
	u64 addr, value;
};
_Static_assert(sizeof(struct walk_read) == 16, "four to a cache line");

/* A frame of an interpreted language, and what was read for it. */
struct language_frame {
	u64 at;     /* address of the frame */
	u32 node;   /* of the frames up to here */
	u16 nreads; /* more than there is room for: the frame cannot be used again */
	u8 word;    /* 1: it has a word in the stack; else it is no function's */
	u8 marks;   /* 1: it says that native code has called the frame that it called */
	struct walk_read reads[LANGUAGE_READS];
};

/* Of a ring (alloc_language.c). */
struct alloc_language {
	struct wire_language facts;
	u64 state;              /* of the thread, if that can be found without a search; else 0 */
	u64 context, end;       /* of Ruby's stack in the walk before */
	u32 n;                  /* frames of the walk before, all of its words included */
	u32 native, node, pair; /* the last stack */
	u32 loose;              /* 1: the frames have no words of code */
	struct language_frame frames[LANGUAGE_FRAMES]; /* the outermost first */
	/* Of the walk at hand, the innermost first. */
	struct wire_stack stack;
	struct language_frame new[LANGUAGE_FRAMES];
	struct wire_alloc_name asks[LANGUAGE_FRAMES];
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
	u32 loops;              /* of its innermost frame: LOOP_... */
	u64 loop, loop_size;    /* the text of an interpreter's loop; size 0: there is none */
	u64 rules[WALK_RULES];  /* of addresses that were met; remember_rule() */
	struct walk_frame frames[WIRE_ALLOC_FRAMES]; /* the outermost first */
	/* Where the return address of a frame lies, and its value, when the step to the caller
	 * needs nothing else: quick, and no frame further out needs the rbp that it saves; else 0.
	 * Each walk compares those of all frames, so they lie close to each other. */
	struct walk_read returns[WIRE_ALLOC_FRAMES];
	struct walk_read reads[WALK_READS];
	/* Of the walk at hand, the innermost first. */
	u64 pcs[WIRE_ALLOC_FRAMES];
	struct walk_frame new[WIRE_ALLOC_FRAMES];
	struct walk_read now[WALK_READS];
	struct alloc_language language;
};

/* Behind the walks of all rings: ids of functions of a language that were asked for. */
#define ALLOC_WALKS_BYTES (sizeof(struct alloc_walk) * WIRE_ALLOC_RINGS + LANGUAGE_MET * 8)

/* Makes [addr, addr + size) a part of what may be read. Returns false when it cannot. */
int alloc_reach(struct alloc_walk *w, u64 addr, u64 size) HIDDEN;
/* Finds the stack that the stack pointer is on. */
void alloc_find_stack(struct alloc_walk *w, u64 sp) HIDDEN;
/* Reads memory that may be missing. Returns 0 on success. */
int alloc_read_far(u64 *dst, u64 addr, u64 size) HIDDEN;
/* Asks for new tables because an address is in no mapping, or in one without tables. Returns
 * true when there are new ones. */
int alloc_ask_for(struct wire_alloc *m, int listed) HIDDEN;
/* Returns the number of a node, 0: there are no more. */
u32 alloc_node(struct wire_alloc *m, u32 parent, u64 pc) HIDDEN;

/* --- alloc_language.c --- */
/* Walks the frames of the interpreted language that the thread runs. native: the number of the
 * native stack. in_loop: it has a frame of the interpreter's loop, else the rest of it is missing.
 * Returns the number of the stack with both. */
u32 alloc_language(struct thread *t, u32 native, bool in_loop) HIDDEN;
/* Takes what is known of the process's interpreter, 0: it has none. */
void alloc_language_begin(struct alloc_walk *w, const struct wire_alloc *m,
			  const struct wire_language *facts) HIDDEN;
/* The walk is another thread's now. */
void alloc_language_forget(struct alloc_walk *w) HIDDEN;
/* An allocation has no walk of the language: its frames of before may be gone. */
INLINE void alloc_language_skip(struct alloc_walk *w)
{
	if (w->loop_size)
		w->language.n = 0;
}
/* This process was forked: another tracer's list of names is empty. */
void alloc_language_drop(void) HIDDEN;

#endif
