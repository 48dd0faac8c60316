/* How long a run may wait for the memory of traced processes, while its events are not read.
 *
 * In: times (now_ns()). Out: the time that may be spent now. Always true: a process whose pages
 * come late, from userfaultfd(2) or FUSE, holds a run up for PATIENCE_ROOM and a quarter of its
 * time. */
#ifndef DESCRY_PROGRAM_RUNTIME_PATIENCE_H
#define DESCRY_PROGRAM_RUNTIME_PATIENCE_H

#include <stdint.h>

#define PATIENCE_ROOM 4000000000ull /* ns */
enum { PATIENCE_SHARE = 4 };

/* Of all processes of a run. */
struct patience {
	uint64_t begun, used; /* ns; used: in reads of their memory */
};

static inline uint64_t patience_left(const struct patience *p, uint64_t now)
{
	const uint64_t room = PATIENCE_ROOM + (now - p->begun) / PATIENCE_SHARE;

	return p->used < room ? room - p->used : 0;
}

#endif
