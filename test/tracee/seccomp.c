/* A program that installs a seccomp filter, and works on: `seccomp WHEN FILTER N [FILE]`.
 *
 *	WHEN    before   the filter, then N calls of work()
 *	        after    N calls, the filter, N calls when the file's first byte is 2
 *	        thread   a thread installs it for itself; it and the first one make N calls each
 *	        tsync    8 threads work all the time; in the middle the first one installs it for all
 *	        child    a forked child installs it; both make N calls
 *	        inherit  the filter, N calls, then a forked child makes N calls
 *	        crash    the filter, N calls, then a fault
 *	        handler  the filter, N calls, and N in a handler for SIGSEGV, which was there before
 *	        alt      threads started under the filter, with signal stacks: N calls each
 *	        name     the filter, N calls, another name, N calls
 *	FILTER  kill, trap, errno   an unexpected call ends the process, in two ways, or fails
 *	        strict   seccomp's strict mode
 *	        service  permits the calls of an ordinary systemd service (SystemCallFilter=@system-service, in part); others end it
 *	        none
 *	FILE    before the first call of work() it waits until this file's first byte is not 0
 *
 * It prints a sum of its results, and ends with 7.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const volatile char *gate;
static const char *filter;
static long rounds;
static volatile int crash;

__attribute__((noipa)) uint64_t work(const char *text, uint64_t x)
{
	__asm__ volatile("");
	return (x ^ x >> 7) * 31 + (uint8_t)text[0];
}

static uint64_t work_on(uint64_t x, long n)
{
	for (long i = 0; i < n; i++)
		x = work("some text", x);
	return x;
}

/* --- filters --- */

/* Permitted calls: those that the C library makes for threads and children, where WHEN needs
 * them. */
static const uint16_t few[] = { SYS_write, SYS_exit_group, SYS_exit, SYS_futex };
static const uint16_t more[] = {
	SYS_clone,           SYS_clone3,    SYS_wait4,        SYS_rt_sigprocmask,
	SYS_set_robust_list, SYS_rseq,      SYS_mmap,         SYS_mprotect,
	SYS_munmap,          SYS_madvise,   SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_tgkill,          SYS_gettid,    SYS_getpid,       SYS_prctl,
	SYS_rt_sigaction,    SYS_getrandom, SYS_brk
};
static const uint16_t service[] = {
	SYS_read,
	SYS_open,
	SYS_close,
	SYS_fstat,
	SYS_poll,
	SYS_lseek,
	SYS_brk,
	SYS_rt_sigaction,
	SYS_ioctl,
	SYS_pread64,
	SYS_pwrite64,
	SYS_access,
	SYS_pipe,
	SYS_select,
	SYS_dup,
	SYS_nanosleep,
	SYS_socket,
	SYS_connect,
	SYS_accept,
	SYS_sendto,
	SYS_recvfrom,
	SYS_bind,
	SYS_fcntl,
	SYS_fsync,
	SYS_getcwd,
	SYS_chdir,
	SYS_openat,
	SYS_epoll_wait,
	SYS_epoll_ctl,
	SYS_getrandom,
	SYS_clock_nanosleep,
	SYS_newfstatat,
};
static struct sock_filter code[2 * 64 + 8];
static uint16_t ncode;

static void permit(const uint16_t *nr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		code[ncode++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr[i], 0, 1);
		code[ncode++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
}

static void put_in(int all, int wide)
{
	struct sock_fprog prog = { .filter = code };
	uint32_t other = !strcmp(filter, "trap")    ? SECCOMP_RET_TRAP
			 : !strcmp(filter, "errno") ? SECCOMP_RET_ERRNO | EPERM
						    : SECCOMP_RET_KILL_PROCESS;
	int failed;

	if (!strcmp(filter, "none"))
		return;
	if (!strcmp(filter, "strict")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			exit(77);
		return;
	}
	code[ncode++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						     offsetof(struct seccomp_data, nr));
	permit(few, sizeof(few) / sizeof(*few));
	if (wide)
		permit(more, sizeof(more) / sizeof(*more));
	if (!strcmp(filter, "service"))
		permit(service, sizeof(service) / sizeof(*service));
	code[ncode++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
	prog.len = ncode;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		exit(77);
	failed = all ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				    &prog)
		     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
	if (failed)
		exit(77);
}

/* --- ends --- */

static void end(uint64_t sum)
{
	char text[32];
	size_t n = sizeof(text);

	text[--n] = '\n';
	do
		text[--n] = (char)('0' + sum % 10);
	while (sum /= 10);
	if (syscall(SYS_write, 1, text + n, sizeof(text) - n) < 0)
		syscall(SYS_exit, 1);
	if (!strcmp(filter, "strict")) /* exit_group(2) is not permitted */
		syscall(SYS_exit, 7);
	syscall(SYS_exit_group, 7);
}

static void wait_for_gate(int n)
{
	while (gate && *gate < n)
		__asm__ volatile("pause");
}

/* --- threads --- */

static _Atomic int done, go;
static uint64_t sums[8];

static void *filtered_thread(void *arg)
{
	put_in(0, 0);
	sums[0] = work_on(2, rounds);
	done = 1;
	for (;;)
		syscall(SYS_futex, &go, 0, 0, NULL, NULL, 0);
	return NULL;
}

static void *endless_thread(void *arg)
{
	uint64_t *sum = arg;

	for (long i = 0; i < rounds; i++) {
		*sum = work_on(*sum, 1);
		if (i == rounds / 4)
			done++;
		while (i == rounds / 2 && !go)
			*sum += 0;
	}
	done++;
	for (;;)
		syscall(SYS_futex, &go, 0, 1, NULL, NULL, 0);
	return NULL;
}

static void on_signal(int sig)
{
	sums[7] += work_on(3, rounds);
}

static void *alt_thread(void *arg)
{
	static char stacks[8][65536];
	const stack_t s = { .ss_sp = stacks[(uint64_t *)arg - sums], .ss_size = sizeof(stacks[0]) };

	sigaltstack(&s, NULL);
	for (int i = 0; i < 3; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	*(uint64_t *)arg = work_on(4, rounds);
	return NULL;
}

/* --- the modes --- */

static uint64_t run_thread(void)
{
	uint64_t sum;
	pthread_t t;

	pthread_create(&t, NULL, filtered_thread, NULL);
	sum = work_on(1, rounds);
	while (!done)
		sched_yield();
	return sum + sums[0];
}

static uint64_t run_tsync(void)
{
	uint64_t sum = 0;
	pthread_t t;

	for (int i = 0; i < 8; i++) {
		sums[i] = (uint64_t)i;
		pthread_create(&t, NULL, endless_thread, &sums[i]);
	}
	while (done < 8)
		sched_yield();
	put_in(1, 0);
	go = 1;
	while (done < 16)
		__asm__ volatile("pause");
	for (int i = 0; i < 8; i++)
		sum += sums[i];
	return sum;
}

static uint64_t run_child(int inherited)
{
	uint64_t sum = inherited ? work_on(1, rounds) : 0;
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		if (!inherited)
			put_in(0, 0);
		end(work_on(5, rounds));
	}
	if (!inherited)
		sum = work_on(1, rounds);
	while (waitpid(pid, &status, 0) < 0)
		;
	return sum + (uint64_t)status;
}

static uint64_t run_alt(void)
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, alt_thread, &sums[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return sums[0] + sums[1] + sums[2];
}

static void on_fault(int sig)
{
	end(work_on(6, rounds));
}

int main(int argc, char **argv)
{
	struct sigaction a = { .sa_handler = on_fault };
	uint64_t sum = 0;
	const char *when;

	if (argc < 4)
		return 2;
	when = argv[1];
	filter = argv[2];
	rounds = atol(argv[3]);
	if (argc > 4)
		gate = mmap(NULL, 1, PROT_READ, MAP_SHARED, open(argv[4], O_RDONLY), 0);
	if (!strcmp(when, "handler"))
		sigaction(SIGSEGV, &a, NULL);
	a.sa_handler = on_signal;
	a.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &a, NULL);
	if (!strcmp(when, "before") || !strcmp(when, "crash") || !strcmp(when, "handler"))
		put_in(0, 0);
	if (!strcmp(when, "inherit") || !strcmp(when, "alt") || !strcmp(when, "name"))
		put_in(0, 1);
	wait_for_gate(1);
	if (!strcmp(when, "thread")) {
		sum = run_thread();
	} else if (!strcmp(when, "tsync")) {
		sum = run_tsync();
	} else if (!strcmp(when, "child") || !strcmp(when, "inherit")) {
		sum = run_child(!strcmp(when, "inherit"));
	} else if (!strcmp(when, "alt")) {
		sum = run_alt();
	} else {
		sum = work_on(1, rounds);
		if (!strcmp(when, "after")) {
			put_in(0, 0);
			wait_for_gate(2);
		}
		if (!strcmp(when, "name"))
			prctl(PR_SET_NAME, "another");
		if (!strcmp(when, "after") || !strcmp(when, "name"))
			sum = work_on(sum, rounds);
		if (!strcmp(when, "crash") || !strcmp(when, "handler"))
			*(volatile int *)8 = crash;
	}
	end(sum);
}
