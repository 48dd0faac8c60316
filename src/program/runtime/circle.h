/* Finds circles in chains of addresses that a process has made, by Brent's method: it keeps one
 * address of the chain, and replaces it after 1, 2, 4... steps. */
#ifndef DESCRY_PROGRAM_RUNTIME_CIRCLE_H
#define DESCRY_PROGRAM_RUNTIME_CIRCLE_H

#include <stdbool.h>
#include <stdint.h>

/* Zero is the beginning of a chain. */
struct circle {
	uint64_t kept;
	uint32_t steps, until;
};

/* Takes the next address of the chain, not 0. Returns true when the chain has come back to an
 * address: after at most three times as many steps as it has different addresses. */
static inline bool circle_closed(struct circle *c, uint64_t addr)
{
	if (addr == c->kept)
		return true;
	if (++c->steps > c->until) {
		c->kept = addr;
		c->until = c->until ? c->until * 2 : 1;
		c->steps = 0;
	}
	return false;
}

#endif
