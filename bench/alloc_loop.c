/* alloc_loop CALLS THREADS [DEPTH [BLOCKS]]: each thread makes so many calls of malloc(3) and
 * free(3), in a random order over BLOCKS (64, a power of two) blocks of 16 to 515 bytes, DEPTH
 * functions deep. Prints the CPU time and the wall clock time of a call, in nanoseconds. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MAX = 64 };

static long calls, blocks = 64;
static int shift;

static double now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) void work(void *volatile *p)
{
	uint32_t x = 1;

	for (long i = 0; i < calls / 2; i++) {
		x = x * 1664525 + 1013904223;
		free(p[x >> shift]);
		p[x >> shift] = malloc(16 + (x >> 10) % 500);
	}
}

static __attribute__((noinline)) void deep(void *volatile *p, long depth)
{
	if (depth > 0)
		deep(p, depth - 1);
	else
		work(p);
	__asm__ volatile(""); /* so that no call is a jump */
}

static void *run(void *arg)
{
	void *volatile *p = calloc((size_t)blocks, sizeof(*p));

	deep(p, (long)arg);
	for (long i = 0; i < blocks; i++)
		free(p[i]);
	free((void *)p);
	return NULL;
}

int main(int argc, char **argv)
{
	const long threads = argc > 2 ? atol(argv[2]) : 1, depth = argc > 3 ? atol(argv[3]) : 0;
	pthread_t t[THREADS_MAX];
	double cpu, wall;

	calls = argc > 1 ? atol(argv[1]) : 0;
	blocks = argc > 4 ? atol(argv[4]) : blocks;
	if (calls < 1 || threads < 1 || threads > THREADS_MAX || blocks < 2)
		return 2;
	shift = __builtin_clz((unsigned)blocks) + 1;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	wall = now(CLOCK_MONOTONIC);
	if (threads == 1)
		run((void *)depth);
	for (long i = 0; threads > 1 && i < threads; i++)
		pthread_create(&t[i], NULL, run, (void *)depth);
	for (long i = 0; threads > 1 && i < threads; i++)
		pthread_join(t[i], NULL);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	fprintf(stderr, "cpu %.2f wall %.2f\n", cpu / (double)(calls * threads),
		wall / (double)(calls * threads));
	return 0;
}
