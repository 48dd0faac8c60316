/* Timers whose program the kernel may leave out: ticks fire once for each period nevertheless, and
 * samples that are missing are counted. Shared by generated code and the kernel engine. */
#ifndef DESCRY_WIRE_TICK_H
#define DESCRY_WIRE_TICK_H

#include <stdint.h>

/* One for each tick probe, in MAP_TICKS. A tick's program runs at two timers on one CPU, the tick's
 * own and the second timer of load/kernel/kernel_ticks.c. It fires when a tick is due, and then
 * sets `next` to the following one. The loader sets `next` before the first timer runs;
 * afterwards only the program writes here. */
struct wire_tick {
	uint64_t next; /* CLOCK_MONOTONIC ns: the tick that has not fired yet is due then */
	uint64_t lost; /* ticks that were given up because they were too late */
};

/* One for each profile probe of a program that reports its costs, in MAP_SAMPLES, on each CPU. */
struct wire_samples {
	uint64_t first, last; /* CLOCK_MONOTONIC ns: its first and its last firing */
	uint64_t n;           /* firings */
};

/* A tick that is later than this and a period is given up. */
enum { WIRE_TICK_LATE = 1000000000 };

_Static_assert(sizeof(struct wire_tick) == 16, "tick");
_Static_assert(sizeof(struct wire_samples) == 24, "samples");

#endif
