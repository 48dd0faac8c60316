/* The traced program of the benchmarks: does what a line on standard input says and prints what it took.
 *
 *	getppid|malloc|spin BURSTS CALLS    one line for each burst: ns of the gauge, ns of the burst
 *	gaps MS                             one line: gaps seen, ns lost in them
 *
 * The gauge is a fixed number of multiplications, run right before and after each burst: the machine changes its speed
 * under us, and a burst is only comparable to another after both are divided by their gauges. A burst whose two gauges
 * differ is done again.
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

enum { GAUGE = 8000, GAP_NS = 300 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t gauge(void)
{
	uint64_t start = now(), x = start | 1;

	for (int i = 0; i < GAUGE; i++)
		__asm__ volatile("imul %0, %0" : "+r"(x));
	return now() - start;
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
	for (long i = 0, tries = 0; i < n; i++) {
		uint64_t before = gauge(), start = now(), took, after;

		work(kind, calls);
		took = now() - start;
		after = gauge();
		if ((before > after ? before - after : after - before) * 20 > before && tries++ < 20 * n)
			i--;
		else
			printf("%lu %lu\n", (before + after) / 2, took);
	}
}

static void gaps(long ms)
{
	uint64_t last = now(), end = last + (uint64_t)ms * 1000000, n = 0, lost = 0;

	while (last < end) {
		uint64_t t = now();

		/* Longer ones are other programs' time slices. */
		if (t - last > GAP_NS && t - last < 100 * 1000) {
			n++;
			lost += t - last;
		}
		last = t;
	}
	printf("%lu %lu\n", n, lost);
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
