/* System calls for the in-process engine to trace: `syscalls MODE [N]`; each mode prints lines that
 * must be the same whether it is traced or not. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In a function of this program: the number is known, and the compiler chooses the instructions
 * around it. */
__attribute__((noipa)) static long own_getppid(void)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(SYS_getppid) : "rcx", "r11", "memory");
	return r;
}

static int do_ids(uint64_t n)
{
	pid_t parent = getppid();
	uint64_t same = 0;

	for (uint64_t i = 0; i < n; i++)
		same += getppid() == parent && own_getppid() == parent &&
			syscall(SYS_getppid) == parent;
	printf("%llu\n", (unsigned long long)same);
	return 0;
}

static int do_files(uint64_t n)
{
	int good = 0, bad = 0;
	char buf[16];

	for (uint64_t i = 0; i < n; i++) {
		int fd = open(i % 3 ? "/dev/null" : "/nowhere/at/all", O_RDWR);

		if (fd < 0) {
			bad += errno == ENOENT;
			continue;
		}
		good += write(fd, "hello", 1 + i % 5) == (ssize_t)(1 + i % 5);
		good += pread(fd, buf, sizeof(buf), 0) == 0;
		if (lseek(fd, (off_t)(int32_t)i, SEEK_SET) < 0)
			return 2;
		close(fd);
	}
	if (read(-1, buf, 1) != -1 || errno != EBADF || syscall(SYS_write, 1, 16, 4) != -1 ||
	    errno != EFAULT)
		return 3;
	printf("%d %d\n", good, bad);
	return 0;
}

/* Six arguments, in the registers that system calls have them. */
static int do_six(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		void *p = mmap(NULL, 4096 * (1 + i % 4), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED || munmap(p, 4096 * (1 + i % 4)))
			return 2;
	}
	if (syscall(SYS_mmap, 0, 0, 3, 4, 5, 4096) != -1 || errno != EBADF)
		return 3;
	printf("%llu\n", (unsigned long long)n);
	return 0;
}

/* --- signals that interrupt calls, with calls in their handlers --- */

static volatile int signals, deep;

static volatile bool interrupts;

/* The timer goes on until it has interrupted the call: on a busy machine it may come before it. */
static void on_alarm(int sig, siginfo_t *info, void *uc)
{
	void *frames[32];

	if (!interrupts || ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RAX] != -EINTR)
		return;
	interrupts = false;
	signals++;
	/* handler, signal frame, syscall, do_signals, main at least: from where the call waits */
	deep += backtrace(frames, 32) >= 5;
	syscall(SYS_getuid);
	if (getppid() < 0)
		_exit(9);
}

/* nanosleep through syscall(2): its number is known only at run time, and the handler makes such
 * calls too. */
static int do_signals(uint64_t n)
{
	struct sigaction sa = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO };
	struct itimerval off = { 0 };
	int interrupted = 0;

	sigaction(SIGALRM, &sa, NULL);
	for (uint64_t i = 0; i < n; i++) {
		struct itimerval in = { { 0, 2000 }, { 0, 2000 } };
		struct timespec t = { 60, 0 };

		interrupts = true;
		setitimer(ITIMER_REAL, &in, NULL);
		interrupted += syscall(SYS_nanosleep, &t, NULL) == -1 && errno == EINTR;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	printf("%d %d %d\n", interrupted, signals, deep);
	return 0;
}

/* --- threads --- */

static void *run(void *arg)
{
	for (uint64_t i = 0; i < *(uint64_t *)arg; i++)
		if (syscall(SYS_gettid) != gettid())
			return NULL;
	return arg;
}

static int do_threads(uint64_t n)
{
	enum { N = 8 };
	pthread_t t[N];
	int ok = 0;

	for (int i = 0; i < N; i++)
		if (pthread_create(&t[i], NULL, run, &n))
			return 2;
	for (int i = 0; i < N; i++) {
		void *r;

		pthread_join(t[i], &r);
		ok += r != NULL;
	}
	printf("%d\n", ok);
	return 0;
}

static void *wait_for_ever(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 ? arg : NULL;
}

/* A thread that waits in a call is cancelled. */
static int do_cancel(uint64_t n)
{
	int fds[2], gone = 0;

	if (pipe(fds))
		return 2;
	for (uint64_t i = 0; i < n; i++) {
		pthread_t t;
		void *r;

		if (pthread_create(&t, NULL, wait_for_ever, &fds[0]))
			return 3;
		usleep(2000);
		pthread_cancel(t);
		pthread_join(t, &r);
		gone += r == PTHREAD_CANCELED;
	}
	printf("%d\n", gone);
	return 0;
}

/* --- children --- */

static int do_children(uint64_t n)
{
	char *argv[] = { "/bin/true", NULL };
	volatile int ok = 0;
	int status;

	for (volatile uint64_t i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(getppid() < 0);
		ok += waitpid(pid, &status, 0) == pid && !status;
		pid = vfork();
		if (!pid)
			_exit(0);
		ok += waitpid(pid, &status, 0) == pid && !status;
		if (!posix_spawn(&pid, argv[0], NULL, NULL, argv, NULL))
			ok += waitpid(pid, &status, 0) == pid && !status;
		getppid();
	}
	printf("%d\n", ok);
	return 0;
}

static int do_spin(uint64_t n)
{
	struct timespec a, b;
	uint64_t best = UINT64_MAX;

	for (int k = 0; k < 11; k++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		for (uint64_t i = 0; i < n; i++)
			getppid();
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		uint64_t ns = (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000 +
			      (uint64_t)(b.tv_nsec - a.tv_nsec);

		best = ns < best ? ns : best;
	}
	printf("%.2f\n", (double)best / (double)n);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(uint64_t n);
	} modes[] = {
		{ "ids", do_ids },           { "files", do_files },     { "six", do_six },
		{ "signals", do_signals },   { "threads", do_threads }, { "cancel", do_cancel },
		{ "children", do_children }, { "spin", do_spin },
	};
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run(n);
	fprintf(stderr, "usage: syscalls MODE [N]\n");
	return 1;
}
