/* The shortcut of a thunk (shortcut.c). */
#ifndef DESCRY_COMPILE_JIT_SHORTCUT_H
#define DESCRY_COMPILE_JIT_SHORTCUT_H

#include "compile/jit/jit_private.h"

enum { SHORTCUT_WAYS = 64, SHORTCUT_FAILS = 16 * SHORTCUT_WAYS };

struct shortcut_place {
	int32_t rsp; /* distance from rsp to the value that the context has for it */
	bool rax;    /* rax holds the value that the context has for it */
};

/* Returns true when some firings of the program may take a shortcut. */
bool jit_has_shortcut(struct jit *j, const struct shortcut_place *p);
/* Ends of wide jumps: to the end of the thunk, when the firing is over; to the whole program; to
 * the whole program, with rcx on the stack. */
struct shortcut_jumps {
	uint32_t outs[SHORTCUT_WAYS], runs[SHORTCUT_WAYS], fails[SHORTCUT_FAILS];
	uint32_t nouts, nruns, nfails;
};
/* Writes the shortcut. The thunk's end must stand right behind it. in: T0 = the thread's entry,
 * r12 = the thread. Returns true when it writes T1. */
bool jit_shortcut(struct jit *j, const struct shortcut_place *p, struct shortcut_jumps *ret);

#endif
