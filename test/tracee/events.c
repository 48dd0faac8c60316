/* Processes and threads that begin, end, signal and execute, for provider proc: `events MODE [N]`.
 * Each mode prints lines that must be the same whether it is traced or not. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile int caught;

static void on_signal(int sig)
{
	__sync_fetch_and_add(&caught, 1);
}

static void *worker(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	usleep(100);
	return arg;
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_NAME, "sleeper");
	for (;;)
		pause();
	return arg;
}

static int do_threads(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++) {
		pthread_t t;
		void *r;

		if (pthread_create(&t, NULL, worker, (void *)i) || pthread_join(t, &r))
			return 2;
		sum += (long)r;
	}
	printf("%ld\n", sum);
	return 0;
}

static int spawn_true(void)
{
	char *argv[] = { (char *)"true", NULL };
	int st = -1;
	pid_t p;

	if (posix_spawn(&p, "/bin/true", NULL, NULL, argv, environ) || waitpid(p, &st, 0) != p)
		return -1;
	return st;
}

static int do_children(long n)
{
	volatile int good = 0;
	int st;

	for (volatile long i = 0; i < n; i++) {
		pid_t p = fork();

		if (!p)
			_exit((int)i & 63);
		good += waitpid(p, &st, 0) == p && WEXITSTATUS(st) == (i & 63);
		p = vfork();
		if (!p)
			_exit(3);
		good += waitpid(p, &st, 0) == p && WEXITSTATUS(st) == 3;
		good += spawn_true() == 0;
	}
	printf("%d\n", good);
	return 0;
}

static int do_spawn(long n)
{
	int good = 0;

	for (long i = 0; i < n; i++)
		good += spawn_true() == 0;
	printf("%d\n", good);
	return 0;
}

static int do_signals(long n)
{
	int good = 0;

	signal(SIGUSR1, on_signal);
	for (long i = 0; i < n; i++) {
		union sigval v = { .sival_int = 1 };

		good += kill(getpid(), SIGUSR1) == 0;
		good += raise(SIGUSR1) == 0;
		good += pthread_kill(pthread_self(), SIGUSR1) == 0;
		good += syscall(SYS_tkill, gettid(), SIGUSR1) == 0;
		good += sigqueue(getpid(), SIGUSR1, v) == 0;
		good += kill(getpid(), 0) == 0;
		good += kill(0x3fffffff, SIGUSR1) == -1 && errno == ESRCH;
		good += kill(getpid(), 1000) == -1 && errno == EINVAL;
	}
	printf("%d %d\n", good, caught);
	return 0;
}

/* Waits until /proc/PID/stat has a name and a state: "(victim) S". */
static void wait_asleep(pid_t pid, const char *what)
{
	char path[32], text[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (!strstr(text, what)) {
		FILE *f = fopen(path, "r");

		if (!f || !fgets(text, sizeof(text), f))
			*text = '\0';
		if (f)
			fclose(f);
		usleep(1000);
	}
}

/* A child that waits, and is killed. */
static int do_kill(long n)
{
	int good = 0, st;

	for (long i = 0; i < n; i++) {
		pid_t p = fork();

		if (!p) {
			prctl(PR_SET_NAME, "victim");
			kill(getppid(), SIGCONT);
			for (;;)
				pause();
		}
		wait_asleep(p, "(victim) S");
		good += kill(p, SIGKILL) == 0 && waitpid(p, &st, 0) == p && WTERMSIG(st) == SIGKILL;
	}
	printf("%d\n", good);
	return 0;
}

static int start_sleepers(long n)
{
	pthread_t t;

	for (long i = 0; i < n; i++)
		if (pthread_create(&t, NULL, sleeper, NULL))
			return 2;
	usleep(600000);
	puts("ready");
	fflush(stdout);
	return 0;
}

static int do_exec(long n, char **argv)
{
	char number[24];

	usleep(500000); /* until it is traced again */
	if (execl("/nowhere/at/all", "x", NULL) != -1 || errno != ENOENT)
		return 2;
	snprintf(number, sizeof(number), "%ld", n - 1);
	if (n > 1)
		execl(argv[0], argv[0], "exec", number, NULL);
	puts("executed");
	return 0;
}

/* The last thread is not the first. */
static int do_alone(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, worker, NULL))
		return 2;
	pthread_exit(NULL);
}

/* Bursts of threads beside forks, which other programs trace meanwhile. */
static void *burst(void *arg)
{
	long wrong = 0;

	for (long i = 0; i < (long)arg; i++) {
		pthread_t t[4];
		void *r;

		for (long k = 0; k < 4; k++)
			wrong += pthread_create(&t[k], NULL, worker, (void *)k) != 0;
		for (long k = 0; k < 4; k++)
			wrong += pthread_join(t[k], &r) != 0 || (long)r != k;
		raise(SIGUSR1);
	}
	return (void *)wrong;
}

static int do_storm(long n)
{
	long wrong = 0;
	pthread_t t[2];
	void *r;

	signal(SIGUSR1, on_signal);
	for (int k = 0; k < 2; k++)
		wrong += pthread_create(&t[k], NULL, burst, (void *)n) != 0;
	for (long i = 0; i < n / 4; i++) {
		int st;
		pid_t p = fork();

		if (!p)
			_exit((int)i & 63);
		wrong += waitpid(p, &st, 0) != p || WEXITSTATUS(st) != (i & 63);
		wrong += spawn_true() != 0;
	}
	for (int k = 0; k < 2; k++) {
		wrong += pthread_join(t[k], &r) != 0;
		wrong += (long)r;
	}
	printf("%ld wrong, %d caught\n", wrong, caught);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 1;

	if (!strcmp(mode, "threads"))
		return do_threads(n);
	if (!strcmp(mode, "children"))
		return do_children(n);
	if (!strcmp(mode, "spawn"))
		return do_spawn(n);
	if (!strcmp(mode, "signals"))
		return do_signals(n);
	if (!strcmp(mode, "kill"))
		return do_kill(n);
	if (!strcmp(mode, "exec"))
		return do_exec(n, argv);
	if (!strcmp(mode, "alone"))
		return do_alone();
	if (!strcmp(mode, "storm"))
		return do_storm(n);
	if (!strcmp(mode, "group") && !start_sleepers(n))
		exit(3);
	if (!strcmp(mode, "crash") && !start_sleepers(n))
		abort();
	return 2;
}
