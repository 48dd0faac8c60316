/* Programs that execute programs: `execs MODE [N]`. Each ends as `execs end` and prints the
 * expected lines.
 *	chain N   executes itself N times
 *	thread N  likewise, from a thread that is not the first, beside others that run
 *	race N    likewise, from eight threads at once
 *	spawn N   posix_spawn()s N times
 *	vfork N   vfork()s and executes N times
 *	fail N    executes a missing file N times, then itself
 *	leader N  likewise from threads that have tried to, one of which is the first and executes nothing
 *	waits     tries to, and waits in system calls that a stop makes fail
 *	stuck     tries to, and is in vfork(2) when the tracer has given up waiting for the attempt
 *	slow      vfork()s and executes a program that takes two seconds to start
 *	loads LIB  tries to while it loads a library, whose reload() it calls 200 times in a second then
 *	run PATH...  executes the first that can be
 *	end       prints its effective user
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char self[4096], mode[16], number[24];
static volatile long marked;

__attribute__((noinline, noipa)) void execs_mark(long n)
{
	marked = n * 3 + 1;
	marked ^= n;
}

static char *end[] = { self, "end", NULL };

static void try(void)
{
	execve("/nowhere/at/all", end, environ);
}

/* Executes the next program of the chain. Returns when it cannot, or another thread was quicker. */
static void next(void)
{
	char *args[] = { self, mode, number, NULL };

	execve(self, number[0] == '0' ? end : args, environ);
}

static pthread_barrier_t ready;

static void *execute(void *arg)
{
	pthread_barrier_wait(&ready);
	next();
	return arg;
}

static void *busy(void *arg)
{
	pthread_barrier_wait(&ready);
	for (;;)
		marked++;
	return arg;
}

static int threads(int executing, int others)
{
	pthread_t t;

	pthread_barrier_init(&ready, NULL, (unsigned)(executing + others + 1));
	for (int i = 0; i < executing; i++)
		pthread_create(&t, NULL, execute, NULL);
	for (int i = 0; i < others; i++)
		pthread_create(&t, NULL, busy, NULL);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return 1;
}

/* --- leader --- */

static void *fail_and_stay(void *arg)
{
	try();
	for (;;)
		pause();
	return arg;
}

static volatile int flag;

static void *fail_and_execute(void *arg)
{
	usleep(30000);
	try();
	usleep(20000);
	flag = 1;
	next();
	return arg;
}

static int leader(long n)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, fail_and_stay, NULL);
	pthread_create(&t, NULL, fail_and_execute, NULL);
	while (!flag)
		;
	for (volatile long k = (long)getpid() * n * 7919 % 300000; k > 0; k--)
		;
	try();
	for (;;)
		pause();
	return 1;
}

/* --- attempts that fail --- */

static int waits(void)
{
	struct timeval limit = { .tv_usec = 400000 };
	int ep = epoll_create1(0), pair[2], interrupted = 0;
	struct epoll_event e;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return 1;
	for (int i = 0; i < 2; i++) {
		try();
		interrupted += epoll_wait(ep, &e, 1, 400) != 0;
		try();
		interrupted += read(pair[0], &byte, 1) != -1 || errno != EAGAIN;
	}
	printf("%d interrupted\n", interrupted);
	return 0;
}

static void *try_on(void *arg)
{
	while (!flag)
		try();
	return arg;
}

static int loads(const char *path)
{
	unsigned long (*reload)(unsigned long);
	pthread_t t;
	void *lib;

	pthread_create(&t, NULL, try_on, NULL);
	usleep(50000);
	lib = dlopen(path, RTLD_NOW);
	flag = 1;
	reload = lib ? (unsigned long (*)(unsigned long))dlsym(lib, "reload") : NULL;
	if (!reload)
		return 1;
	for (unsigned long i = 0; i < 200; i++) {
		marked += (long)reload(i);
		usleep(5000);
	}
	printf("called\n");
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int stuck(void)
{
	double begun;
	pid_t pid;

	try();
	usleep(100000);
	begun = now();
	pid = vfork();
	if (!pid) {
		usleep(600000);
		_exit(0);
	}
	printf("%s\n", now() - begun < 3 ? "in time" : "late");
	return waitpid(pid, NULL, 0) != pid;
}

static int slow(const char *fifo)
{
	static char preload[4200];
	char *env[] = { preload, NULL };
	double begun = now();
	pid_t opener, pid;

	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", fifo);
	opener = fork();
	if (!opener) {
		sleep(2);
		_exit(open(fifo, O_WRONLY) < 0);
	}
	pid = vfork();
	if (!pid) {
		execve(self, end, env);
		_exit(1);
	}
	if (waitpid(pid, NULL, 0) != pid || waitpid(opener, NULL, 0) != opener)
		return 1;
	printf("%s\n", now() - begun < 5 ? "in time" : "late");
	return 0;
}

/* --- children --- */

static pid_t by_spawn(void)
{
	pid_t pid;

	return posix_spawn(&pid, self, NULL, NULL, end, environ) ? -1 : pid;
}

static pid_t by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execve(self, end, environ);
		_exit(1);
	}
	return pid;
}

static int children(long n, pid_t (*make)(void))
{
	long good = 0;

	for (long i = 0; i < n; i++) {
		int status = -1;
		pid_t pid = make();

		good += pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	}
	printf("%ld good\n", good);
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 1;

	if (argc < 2 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	execs_mark(n);
	snprintf(mode, sizeof(mode), "%s", argv[1]);
	snprintf(number, sizeof(number), "%ld", n - 1);
	if (!strcmp(mode, "end")) {
		printf("%d\n", (int)geteuid());
		return 0;
	}
	if (!strcmp(mode, "run")) {
		for (int i = 2; i < argc; i++) {
			char *args[] = { argv[i], "end", NULL };

			execve(argv[i], args, environ);
		}
		return 1;
	}
	if (!strcmp(mode, "fail")) {
		for (long i = 0; i < n; i++)
			if (execve("/nowhere/at/all", argv, environ) != -1 || errno != ENOENT)
				return 1;
		strcpy(number, "0");
		next();
	}
	if (!strcmp(mode, "chain"))
		next();
	if (!strcmp(mode, "thread"))
		return threads(1, 3);
	if (!strcmp(mode, "leader"))
		return leader(n);
	if (!strcmp(mode, "waits"))
		return waits();
	if (!strcmp(mode, "stuck"))
		return stuck();
	if (!strcmp(mode, "slow") && argc > 2)
		return slow(argv[2]);
	if (!strcmp(mode, "loads") && argc > 2)
		return loads(argv[2]);
	if (!strcmp(mode, "race"))
		return threads(8, 2);
	if (!strcmp(mode, "spawn"))
		return children(n, by_spawn);
	if (!strcmp(mode, "vfork"))
		return children(n, by_vfork);
	return 2;
}
