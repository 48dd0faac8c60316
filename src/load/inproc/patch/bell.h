/* What threads of traced processes and the tracer tell each other. */
#ifndef DESCRY_LOAD_INPROC_BELL_H
#define DESCRY_LOAD_INPROC_BELL_H

#include "load/inproc/state/inproc_state.h"

struct inproc_ask {
	uint32_t what; /* atomic. BELL_LOADS, or the thread's id in its own name space: it executes a program; 0 not written */
	uint32_t pad;
	uint64_t arg; /* first argument of the function: of execve(2) the path */
};
enum { BELL_LOADS = 0x7fffffff, BELL_ASKS = 64 };
struct inproc_bell {
	uint32_t asked; /* atomic, futex */
	uint32_t on;    /* somebody answers */
	uint8_t pad[56];
	uint32_t answered; /* futex: `asked` as it was when all was done for it */
	uint8_t pad1[60];
	struct inproc_ask asks[BELL_ASKS]; /* the nth at n % BELL_ASKS */
};
/* False: there is no room for it. */
bool bell_hang(struct inproc_engine *e);
/* Code that a stub of INPROC_LOADS or INPROC_EXECS calls: written at `mem`, to run anywhere; at
 * most BELL_ROOM bytes. It rings while the uint32_t at armed is not 0 and that at quiet is 0: in no
 * process that has not the shared memory. what: as in struct inproc_ask, 0: the thread's id. */
enum { BELL_ROOM = 384, BELL_MS = 1500 };
void bell_code(const struct inproc_engine *e, uint64_t armed, uint64_t quiet, uint32_t what,
	       uint8_t *mem);
bool bell_rings(const struct inproc_engine *e);
/* When all that bell_take() took is done. */
void bell_answer(struct inproc_engine *e);
/* Nobody answers any more: lets all go on that wait. */
void bell_silence(struct inproc_bell *b);
/* Nobody is to wait for us any more. */
void bell_stop(struct inproc_engine *e);

#endif
