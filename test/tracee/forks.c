/* A program whose children are not followed: `forks MODE [N]`. Every child does the same work as
 * its parent, and its exit code reports whether all results were right.
 *
 *	storm N    four threads work while the first one forks N children; N 0: until its input ends
 *	handler N  a timer's handler forks N children in the middle of the code that it interrupts;
 *	           each returns there, and works on
 *	filtered   at a line of input it filters its system calls (an unexpected one ends it), and
 *	           forks a child; both work until the input ends
 *	chain      at a line of input it filters its system calls, and children fork one another
 *	           until the input ends
 *	idle       at a line of input it forks a child that waits, while it works until the input ends
 *
 * It prints "children N", "bad N" and ends with 0 when none was bad.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

enum { THREADS = 4, ROUNDS = 2000 };

static volatile bool over;
static volatile uint64_t children, wanted;
static uint64_t bad, ended;

CALLED uint64_t work(const char *text, uint64_t x)
{
	__asm__ volatile("");
	return (x ^ x >> 7) * 31 + (uint8_t)text[0];
}

static uint64_t sum(uint64_t n)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++)
		x = work("some text", x + i);
	return x;
}

static void *thread(void *unused)
{
	while (!over)
		sum(ROUNDS);
	return unused;
}

static bool input_ended(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char c;

	return poll(&in, 1, 0) > 0 && read(0, &c, 1) <= 0;
}

/* Of children that have ended; all: of every one. */
static void reap(bool all)
{
	int status;
	pid_t pid;

	while (ended < children) {
		pid = waitpid(-1, &status, all ? 0 : WNOHANG);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			break;
		ended++;
		bad += status != 0;
		if (status)
			printf("a child's status is 0x%x\n", status);
	}
}

static int tell(void)
{
	reap(true);
	printf("children %lu\nbad %lu\n", children, bad);
	return bad != 0;
}

static int storm(uint64_t expected)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	while (wanted ? children < wanted : !input_ended()) {
		pid_t pid = fork();

		if (!pid)
			_exit(sum(ROUNDS) == expected ? 0 : 2);
		children += pid > 0;
		reap(true);
	}
	over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return tell();
}

static volatile bool is_child;

static void on_alarm(int sig)
{
	const int code = errno;
	pid_t pid = children < wanted && !is_child ? fork() : -1;

	if (!pid)
		is_child = true; /* has no timer */
	else if (pid > 0)
		children++;
	errno = code;
}

static int handler(uint64_t expected)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 700 }, { 0, 700 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (children < wanted) {
		bool good = sum(ROUNDS) == expected;

		if (is_child)
			_exit(good && sum(ROUNDS) == expected ? 0 : 2);
		bad += !good;
		reap(false);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	return tell();
}

static void filter(void)
{
	static const uint16_t calls[] = {
		SYS_write,           SYS_read,         SYS_poll,           SYS_clone,
		SYS_wait4,           SYS_kill,         SYS_rt_sigprocmask, SYS_exit_group,
		SYS_fstat,           SYS_gettid,       SYS_newfstatat,     SYS_brk,
		SYS_set_robust_list, SYS_rt_sigreturn, SYS_restart_syscall
	};
	struct sock_filter f[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	uint16_t n = 1;
	struct sock_fprog p = { .filter = f };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	p.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		exit(1);
}

/* works: otherwise the child does nothing. */
static int pair(uint64_t expected, bool works)
{
	struct pollfd a_moment = { .fd = -1 };
	char line[8];
	int status;
	pid_t pid;

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	sum(1);
	if (works)
		filter();
	pid = fork();
	while (!pid) {
		if (works && sum(ROUNDS) != expected)
			_exit(2);
		poll(&a_moment, 1, 1);
	}
	printf("child %d\n", (int)pid);
	fflush(stdout);
	while (!input_ended()) {
		bad += sum(ROUNDS) != expected;
		poll(&a_moment, 1, 1);
	}
	kill(pid, SIGTERM);
	bad += waitpid(pid, &status, 0) != pid || status != SIGTERM;
	printf("children 1\nbad %lu\n", bad);
	fflush(stdout);
	_exit(bad != 0);
}

/* Each child leaves one that waits, and goes on in another. */
static void chain_link(void)
{
	struct pollfd a_moment = { .fd = -1 };

	while (!input_ended()) {
		if (!fork()) {
			for (int i = 0; i < 50 && !input_ended(); i++)
				poll(&a_moment, 1, 20);
			_exit(0);
		}
		poll(&a_moment, 1, 2);
		if (fork())
			_exit(0);
	}
	_exit(0);
}

static int chain(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog p = { .len = 1, .filter = &all };
	struct pollfd a_moment = { .fd = -1 };
	char line[8];

	if (!fgets(line, sizeof(line), stdin) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 1;
	signal(SIGCHLD, SIG_IGN);
	if (!fork())
		chain_link();
	printf("chain\n");
	fflush(stdout);
	while (!input_ended()) {
		sum(1);
		poll(&a_moment, 1, 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const uint64_t expected = sum(ROUNDS);

	if (argc < 2)
		return 2;
	wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	printf("ready\n");
	fflush(stdout);
	if (!strcmp(argv[1], "storm"))
		return storm(expected);
	if (!strcmp(argv[1], "handler"))
		return handler(expected);
	if (!strcmp(argv[1], "chain"))
		return chain();
	return pair(expected, !strcmp(argv[1], "filtered"));
}
