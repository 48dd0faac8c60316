/* Timers of the engines that wait for them in this process.
 *
 * Each period is one firing. Periods that passed while the tracer was busy are made up for, in the
 * order in which they were due. Those that are later than a second and a period are given up, and
 * counted. */
#ifndef DESCRY_LOAD_TIMERS_H
#define DESCRY_LOAD_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct timer {
	uint32_t prog, probe; /* index in image.progs, image.probes */
	uint64_t next;        /* CLOCK_MONOTONIC ns: when the firing that comes next is due */
	uint64_t period;
	bool late_is_lost; /* periods that passed are not made up for, and not counted */
};

struct timers {
	VEC(struct timer) v;
	int fd; /* readable when one is due; -1: none, or they are stopped */
	uint64_t lost;
};

enum { TIMERS_AT_ONCE = 64 }; /* the caller reads the rings after so many firings */

void timers_init(struct timers *t);
void timers_add(struct timers *t, const struct timer *timer);
/* Makes t->fd readable when the next timer is due. Called after timers_take(). */
struct err *timers_arm(struct timers *t);
/* Returns when the next firing is due; UINT64_MAX: never. */
uint64_t timers_next(const struct timers *t);
/* Takes the firing that has been due for longest, and returns its timer; NULL: none is due. */
const struct timer *timers_take(struct timers *t, uint64_t now);
void timers_stop(struct timers *t); /* none fires any more */

#endif
