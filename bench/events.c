/* events RATE SECONDS THREADS: calls getppid() at a steady rate, in steps of a millisecond. Prints
 * the number of calls and the longest delay in ms. Waits for a line on standard input first. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEP_NS = 1000000 };

static uint64_t per_step, steps;

struct worker {
	pthread_t thread;
	uint64_t done, late;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	uint64_t start = now();

	for (uint64_t s = 0; s < steps; s++) {
		uint64_t at = start + s * STEP_NS, t = now();
		struct timespec until = { (time_t)(at / 1000000000), (long)(at % 1000000000) };

		if (t < at)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		else if (t - at > w->late)
			w->late = t - at;
		for (uint64_t i = 0; i < per_step; i++)
			syscall(SYS_getppid);
		w->done += per_step;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker w[16] = { 0 };
	uint64_t done = 0, late = 0;
	int threads = argc > 3 ? atoi(argv[3]) : 1;

	if (argc < 3 || threads < 1 || threads > 16) {
		fprintf(stderr, "usage: events RATE SECONDS [THREADS]\n");
		return 2;
	}
	per_step = (uint64_t)atol(argv[1]) / 1000 / (uint64_t)threads;
	steps = (uint64_t)atol(argv[2]) * 1000;
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < threads; i++)
		pthread_create(&w[i].thread, NULL, run, &w[i]);
	for (int i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		done += w[i].done;
		late = w[i].late > late ? w[i].late : late;
	}
	printf("%lu %lu\n", done, late / 1000000);
	return 0;
}
