/* Threads that wait in known places, for tests of the stacks of all threads. Prints "ready", and
 * ends when its standard input does. "abort": it then ends by abort(3) instead. "overflow": it has
 * one thread, which calls itself until there is no stack any more.
 *
 *	deep N     N calls of one function, which waits for a mutex
 *	handler    in a signal handler on a stack of its own, which interrupted a function that keeps no frame pointer
 *	callback   called back by qsort(3) of the C library
 *	sleeper    in a system call of the C library
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEEP = 3 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_int arrived, released;

#define NO_FP __attribute__((noinline, optimize("omit-frame-pointer", "no-optimize-sibling-calls")))

static NO_FP int threads_wait_here(int n)
{
	volatile int keep = n;

	arrived++;
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return keep;
}

static NO_FP int threads_go_deeper(int n)
{
	volatile int keep[4] = { n, n, n, n };

	return n ? threads_go_deeper(n - 1) + keep[n & 3] : threads_wait_here(n);
}

static NO_FP int threads_overflow(int n)
{
	volatile int keep = n;

	return n < 0 ? n : threads_overflow(n + 1) + keep;
}

static void *deep(void *arg)
{
	threads_go_deeper((int)(long)arg);
	return NULL;
}

static void on_signal(int sig)
{
	threads_wait_here(sig);
}

static NO_FP void threads_spin(void)
{
	while (!released)
		;
}

static void *handler(void *arg)
{
	stack_t own = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	(void)arg;
	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &a, NULL);
	arrived++;
	threads_spin();
	return NULL;
}

static int NO_FP threads_compare(const void *a, const void *b)
{
	static atomic_int once;

	if (!once++)
		threads_wait_here(0);
	return *(const int *)a - *(const int *)b;
}

static void *callback(void *arg)
{
	int v[] = { 3, 1, 2 };

	(void)arg;
	qsort(v, 3, sizeof(*v), threads_compare);
	return NULL;
}

static void *sleeper(void *arg)
{
	(void)arg;
	arrived++;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	char c;

	if (argc > 1 && !strcmp(argv[1], "overflow"))
		return threads_overflow(0);
	pthread_mutex_lock(&held);
	for (long i = 1; i <= DEEP; i++)
		pthread_create(&t, NULL, deep, (void *)(i * 10));
	pthread_create(&t, NULL, callback, NULL);
	pthread_create(&t, NULL, sleeper, NULL);
	pthread_create(&t, NULL, handler, NULL);
	while (arrived < DEEP + 3)
		usleep(1000);
	pthread_kill(t, SIGUSR1);
	while (arrived < DEEP + 4)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	if (argc > 1)
		abort();
	_exit(0);
}
