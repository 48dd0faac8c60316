/* The traced program of the benchmarks: reads commands from standard input, runs each and prints
 * its time.
 *
 *	getppid|malloc|spin BURSTS CALLS    one line for each burst: ns of the slower gauge, ns of the burst
 *	gaps WINDOWS                        one line for each window of 10 ms: ns lost in gaps, ns of the window
 *
 * The gauge is a loop that fills the processor's execution units. It runs right before and after
 * each burst. It takes half as long again while another program runs on the other thread of the
 * same core, and so does the burst. load tries until BURSTS bursts had the core to themselves, or
 * it has tried too many; the reader leaves out the disturbed bursts.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GAUGE = 4000, GAP_NS = 300, WINDOW_NS = 10 * 1000 * 1000, TRIES = 40 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t best = UINT64_MAX; /* the gauge's time on an undisturbed core at full speed */

static uint64_t gauge(void)
{
	uint64_t start = now(), a = 1, b = 2, c = 3, d = 4;

	for (int i = 0; i < GAUGE; i++)
		__asm__ volatile("add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3\n\t"
				 "xor %0, %1\n\txor %2, %3\n\tnop\n\tnop"
				 : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	start = now() - start;
	if (start < best)
		best = start;
	return start;
}

static void work(char kind, long calls)
{
	if (kind == 'g') {
		for (long i = 0; i < calls; i++)
			syscall(SYS_getppid);
	} else if (kind == 'm') {
		for (long i = 0; i < calls; i++) {
			void *p = malloc(32);

			__asm__ volatile("" : : "r"(p) : "memory");
			free(p);
		}
	} else {
		for (long i = 0; i < calls; i++)
			gauge();
	}
}

static void bursts(char kind, long n, long calls)
{
	for (long good = 0, tries = 0; good < n && tries < TRIES * n; tries++) {
		uint64_t before = gauge(), start = now(), took, after;

		work(kind, calls);
		took = now() - start;
		after = gauge();
		if (after > before)
			before = after;
		good += before * 100 <= best * 105;
		printf("%lu %lu\n", before, took);
	}
}

/* Measures the time that interrupts take of windows of 10 ms. */
static void gaps(long windows)
{
	for (; windows > 0; windows--) {
		uint64_t start = now(), last = start, lost = 0;

		while (last - start < WINDOW_NS) {
			uint64_t t = now();

			/* Longer ones are other programs' time slices. */
			if (t - last > GAP_NS && t - last < 100 * 1000)
				lost += t - last;
			last = t;
		}
		printf("%lu %lu\n", lost, last - start);
	}
}

int main(int argc, char **argv)
{
	char line[128], kind[32];
	long a, b;

	if (argc > 1) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)atoi(argv[1]), &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%31s %ld %ld", kind, &a, &b) == 3)
			bursts(kind[0], a, b);
		else if (sscanf(line, "gaps %ld", &a) == 1)
			gaps(a);
		puts(".");
		fflush(stdout);
	}
	return 0;
}
