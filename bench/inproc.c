/* The program that bench/inproc traces: `inproc MODE CALLS REPS [THREADS]` prints for each
 * repetition the CPU time of a call in nanoseconds. MODE burst pauses before each repetition.
 * uftrace needs it compiled with -pg or -fpatchable-function-entry, LTTng-UST with -DLTTNG, which
 * gives hot() a tracepoint. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_tp.h"
#define TRACEPOINT(a, b) lttng_ust_tracepoint(descry_bench, hot, (long)(a), (long)(b))
#else
#define TRACEPOINT(a, b)
#endif

#define CALLED __attribute__((noipa))

/* Has six instructions; entry and return are at least 5 bytes away from any branch. */
CALLED uint64_t hot(uint64_t a, uint64_t b)
{
	TRACEPOINT(a, b);
	__asm__ volatile("");
	return a * 31 + (b ^ a >> 3) + 0x12345;
}

CALLED const char *name(const char *s, uint64_t n)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
	return n ? s : NULL;
}

/* Makes a stack of 16 frames, with main() and its callers. */
CALLED uint64_t deep(uint64_t n, uint64_t calls)
{
	uint64_t r = 0;

	if (n)
		r = deep(n - 1, calls);
	else
		for (uint64_t i = 0; i < calls; i++)
			r = hot(r, i);
	__asm__ volatile("" : "+r"(r));
	return r + n;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static const char *mode;
static uint64_t calls, reps;
static volatile uint64_t sink;

static void once(void)
{
	uint64_t x = 1;

	if (!strcmp(mode, "name")) {
		for (uint64_t i = 1; i <= calls; i++)
			x += (uintptr_t)name("a string of 25 bytes long", i);
	} else if (!strcmp(mode, "getppid")) {
		for (uint64_t i = 1; i <= calls; i++)
			x += (uint64_t)getppid();
	} else if (!strcmp(mode, "deep")) {
		x = deep(11, calls);
	} else {
		for (uint64_t i = 0; i < calls; i++)
			x = hot(x, i);
	}
	sink = x;
}

static void *run(void *arg)
{
	for (uint64_t i = 0; i < reps; i++) {
		double begin;

		if (!strcmp(mode, "burst"))
			usleep(20000);
		begin = now();
		once();
		printf("%.2f\n", (now() - begin) / (double)calls);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t nthreads = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
	pthread_t t[64];

	if (argc < 4 || nthreads > 64)
		return 99;
	mode = argv[1];
	calls = strtoull(argv[2], NULL, 0);
	reps = strtoull(argv[3], NULL, 0);
	if (!strcmp(mode, "wait")) {
		sleep((unsigned)calls);
		return 0;
	}
	for (uint64_t i = 1; i < nthreads; i++)
		pthread_create(&t[i], NULL, run, NULL);
	run(NULL);
	for (uint64_t i = 1; i < nthreads; i++)
		pthread_join(t[i], NULL);
	fflush(stdout);
	return 0;
}
