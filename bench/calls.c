/* calls N M: calls rand_r(3) N times in M rounds, and prints the thread's CPU time per call of the
 * quickest round and of the median, in nanoseconds. The loop makes one library call a turn. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ROUNDS = 1000 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000, m = argc > 2 ? atol(argv[2]) : 10;
	double took[MAX_ROUNDS];
	unsigned seed = 1;

	m = m < 1 ? 1 : m > MAX_ROUNDS ? MAX_ROUNDS : m;
	for (long k = 0; k < m; k++) {
		double began = now();

		for (long i = 0; i < n / m; i++)
			rand_r(&seed);
		took[k] = (now() - began) / (double)(n / m);
	}
	qsort(took, (size_t)m, sizeof(*took), by_value);
	printf("least %.2f median %.2f\n", took[0], took[m / 2]);
	return 0;
}
