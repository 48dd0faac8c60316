/* calls N M: calls rand_r(3) N times in M rounds, and prints the thread's CPU time per call of the
 * quickest round and of the median, in nanoseconds. The loop makes one library call a turn.
 * calls N 1 RATE: calls it N times, RATE times a second, and prints the calls that it made a
 * second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ROUNDS = 1000 };

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Makes the calls in groups, each at its time. */
static int paced(long n, double rate)
{
	enum { GROUP = 500 };
	double began = now(CLOCK_MONOTONIC);
	unsigned seed = 1;

	for (long i = 0; i < n; i += GROUP) {
		while (now(CLOCK_MONOTONIC) - began < (double)i / rate * 1e9)
			;
		for (long k = i; k < i + GROUP && k < n; k++)
			rand_r(&seed);
	}
	printf("rate %.0f\n", (double)n / (now(CLOCK_MONOTONIC) - began) * 1e9);
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000, m = argc > 2 ? atol(argv[2]) : 10;
	double took[MAX_ROUNDS];
	unsigned seed = 1;

	if (argc > 3)
		return paced(n, atof(argv[3]));
	m = m < 1 ? 1 : m > MAX_ROUNDS ? MAX_ROUNDS : m;
	for (long k = 0; k < m; k++) {
		double began = now(CLOCK_THREAD_CPUTIME_ID);

		for (long i = 0; i < n / m; i++)
			rand_r(&seed);
		took[k] = (now(CLOCK_THREAD_CPUTIME_ID) - began) / (double)(n / m);
	}
	qsort(took, (size_t)m, sizeof(*took), by_value);
	printf("least %.2f median %.2f\n", took[0], took[m / 2]);
	return 0;
}
