/* Reads clocks as one number, and sleeps. */
#include "base/clock.h"

uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void nap_ns(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	nanosleep(&t, NULL);
}
