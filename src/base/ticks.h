/* The processor's counter of ticks (TSC), where the kernel itself takes the time from it: it then
 * runs at one rate on all processors. */
#ifndef DESCRY_BASE_TICKS_H
#define DESCRY_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

struct ticks_clock {
	uint64_t ticks, ns; /* of one instant; ns: CLOCK_MONOTONIC */
	uint64_t factor;    /* nanoseconds of a tick, as a fraction of 2^64 */
};

/* Returns false when the counter is no clock here. The first call can take 5 ms. */
bool ticks_clock(struct ticks_clock *ret);

static inline uint64_t ticks_now(void)
{
	return __builtin_ia32_rdtsc();
}
static inline uint64_t ticks_ns(const struct ticks_clock *c, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * c->factor >> 64);
}

#endif
