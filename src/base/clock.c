/* Reads clocks as one number, and sleeps. */
#include "base/clock.h"

static const struct clock_source *replaced; /* atomic; NULL: the kernel's clock */

void clock_use(const struct clock_source *source)
{
	__atomic_store_n(&replaced, source, __ATOMIC_RELEASE);
}

uint64_t clock_ns(clockid_t id)
{
	const struct clock_source *s = __atomic_load_n(&replaced, __ATOMIC_ACQUIRE);
	struct timespec t;

	if (s && id == CLOCK_MONOTONIC)
		return s->now();
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void nap_ns(uint64_t ns)
{
	const struct clock_source *s = __atomic_load_n(&replaced, __ATOMIC_ACQUIRE);
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	if (s)
		s->nap(ns);
	else
		nanosleep(&t, NULL);
}
