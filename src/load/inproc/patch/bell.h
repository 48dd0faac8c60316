/* Messages from threads of traced processes to the tracer. */
#ifndef DESCRY_LOAD_INPROC_BELL_H
#define DESCRY_LOAD_INPROC_BELL_H

#include "load/inproc/state/inproc_state.h"

struct inproc_ask {
	/* atomic. BELL_LOADS, or for an execve(2) the thread's id in its own pid namespace; 0: not
	 * written yet */
	uint32_t what;
	uint32_t pad;
	uint64_t arg; /* first argument of the function; for execve(2) the path */
};
enum { BELL_LOADS = 0x7fffffff, BELL_ASKS = 64 };
struct inproc_bell {
	uint32_t asked; /* atomic, futex */
	uint32_t on;    /* a tracer answers */
	uint8_t pad[56];
	uint32_t answered; /* futex: the value of `asked` when all earlier requests were answered */
	uint8_t pad1[60];
	struct inproc_ask asks[BELL_ASKS]; /* number n is at n % BELL_ASKS */
};
/* Makes the bell. Returns false when there is no room for it. */
bool bell_hang(struct inproc_engine *e);
/* Writes the code that a stub of INPROC_LOADS or INPROC_EXECS calls: at most BELL_ROOM bytes at
 * `mem`, which run at any address. The code rings while the uint32_t at armed is not 0 and that at
 * quiet is 0, and in no process without the shared memory. what: as in struct inproc_ask; 0: the
 * thread's id. */
enum { BELL_ROOM = 384, BELL_MS = 1500 };
void bell_code(const struct inproc_engine *e, uint64_t armed, uint64_t quiet, uint32_t what,
	       uint8_t *mem);
bool bell_rings(const struct inproc_engine *e);
/* Answers all requests that bell_take() took. Call it when they are done. */
void bell_answer(struct inproc_engine *e);
/* Lets all waiting threads go on. No tracer answers any more. */
void bell_silence(struct inproc_bell *b);
/* Stops the bell: no thread waits for the tracer from now on. */
void bell_stop(struct inproc_engine *e);

#endif
