/* The shortcut of a thunk (shortcut.c). */
#ifndef DESCRY_COMPILE_JIT_SHORTCUT_H
#define DESCRY_COMPILE_JIT_SHORTCUT_H

#include "compile/jit/jit_private.h"

enum { SHORTCUT_WAYS = 64 };

struct shortcut_place {
	int32_t rsp; /* distance from rsp to the value that the context has for it */
	bool rax;    /* rax holds the value that the context has for it */
};

/* Returns true when some firings of the program may take a shortcut. */
bool jit_has_shortcut(struct jit *j, const struct shortcut_place *p);
/* Writes the shortcut, which ends where the whole program begins. in: T0 = the thread's entry,
 * r12 = the thread; T1 is free. Fills `outs` with the ends of wide jumps, taken when the firing is
 * over. Returns their number. */
uint32_t jit_shortcut(struct jit *j, const struct shortcut_place *p, uint32_t outs[SHORTCUT_WAYS]);

#endif
