/* Clocks of clock_gettime(2), as one number. */
#ifndef DESCRY_BASE_CLOCK_H
#define DESCRY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the clock's time in nanoseconds. Signal handlers may call it. */
uint64_t clock_ns(clockid_t id);
/* Returns the time of CLOCK_MONOTONIC, the clock of records, probes and time-outs. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Sleeps for that long, or until a signal arrives. */
void nap_ns(uint64_t ns);

/* Replaces CLOCK_MONOTONIC and nap_ns(), for tests that must not sleep. NULL: the kernel's again.
 * Any thread may call the functions. */
struct clock_source {
	uint64_t (*now)(void);
	void (*nap)(uint64_t ns);
};
void clock_use(const struct clock_source *source);

#endif
