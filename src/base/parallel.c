/* Starts threads for parts of a piece of work, and waits for them. */
#define _GNU_SOURCE
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

struct parallel_part {
	pthread_t thread;
	void (*fn)(void *arg, unsigned part);
	void *arg;
	unsigned part;
	int failed;
};

unsigned parallel_threads(void)
{
	cpu_set_t set;
	unsigned n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = (unsigned)CPU_COUNT(&set);
	return !n ? 1 : n < PARALLEL_MAX ? n : PARALLEL_MAX;
}

static void *part_run(void *arg)
{
	struct parallel_part *p = arg;

	p->fn(p->arg, p->part);
	return NULL;
}

void parallel_run(void (*fn)(void *arg, unsigned part), void *arg, unsigned n)
{
	struct parallel_part parts[PARALLEL_MAX];
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 1; i < n; i++) {
		parts[i] = (struct parallel_part){ .fn = fn, .arg = arg, .part = i };
		parts[i].failed = pthread_create(&parts[i].thread, NULL, part_run, &parts[i]);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (n)
		fn(arg, 0);
	for (unsigned i = 1; i < n; i++) {
		if (parts[i].failed)
			fn(arg, i);
		else
			pthread_join(parts[i].thread, NULL);
	}
}
