/* A program for the in-process engine to trace: `inside MODE [N]`. Functions that cannot be inlined
 * or cloned, with known numbers of calls; each mode prints lines that must be the same whether it
 * is traced or not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

CALLED uint64_t work(uint64_t a, uint64_t b)
{
	__asm__ volatile("");
	return a * 31 + (b ^ a >> 3);
}

CALLED const char *text(const char *s, long n)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
	return n ? s : NULL;
}

/* Two returns and a tail call. */
CALLED uint64_t branches(uint64_t a)
{
	if (a % 3 == 0)
		return a + 1;
	if (a % 3 == 1)
		return work(a, 1);
	return work(a, 2) + 1;
}

CALLED uint64_t recurse(uint64_t n)
{
	uint64_t r;

	if (!n)
		return 1;
	r = recurse(n - 1);
	__asm__ volatile("" : "+r"(r));
	return r + n;
}

static uint64_t sum(uint64_t n)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++)
		x = work(x, i);
	return x;
}

static int do_work(uint64_t n)
{
	printf("%llu\n", (unsigned long long)sum(n));
	return 0;
}

static int do_mix(uint64_t n)
{
	uint64_t x = 0;

	for (uint64_t i = 0; i < n; i++) {
		x += branches(i);
		x += recurse(i % 5);
		x += (uintptr_t)text("twenty-five bytes of text", (long)i) & 1;
	}
	printf("%llu\n", (unsigned long long)x);
	return 0;
}

/* --- bad pointers, and a program that has its own handler for them --- */

static sigjmp_buf back;
static volatile int faults;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	faults++;
	siglongjmp(back, 1);
}

static int do_faults(uint64_t n)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old;

	if (sigaction(SIGSEGV, &sa, &old) || old.sa_handler != SIG_DFL)
		return 2;
	if (sigaction(SIGSEGV, NULL, &old) || old.sa_sigaction != on_fault)
		return 3;
	for (volatile uint64_t i = 0; i < n; i++) {
		if (!sigsetjmp(back, 1))
			*(volatile int *)(uintptr_t)(8 * i) = 1;
		text((const char *)(uintptr_t)(16 * i), 1);
		text("good", 1);
	}
	printf("%d faults\n", faults);
	return 0;
}

/* Ends by its own fault. */
static int do_die(uint64_t n)
{
	text((const char *)8, 1);
	*(volatile int *)8 = 1;
	return 0;
}

/* --- processes --- */

static int do_fork(uint64_t n)
{
	uint64_t x = sum(n);
	pid_t pid;
	int status = 0;

	pid = fork();
	if (!pid)
		_exit((int)(sum(n) != x));
	if (waitpid(pid, &status, 0) != pid || status)
		return 4;
	pid = vfork();
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		return 5;
	printf("%d\n", sum(n) == x);
	return 0;
}

static int do_exec(uint64_t n)
{
	sum(n);
	fflush(stdout);
	execl("/proc/self/exe", "inside", "late", "1000", NULL);
	return 6;
}

/* For the executed program: probes come when the tracer has noticed it. */
static int do_late(uint64_t n)
{
	usleep(500000);
	return do_work(n);
}

/* --- threads that come and go, signals, longjmp, libraries --- */

static void *thread(void *arg)
{
	uint64_t n = (uintptr_t)arg;

	return (void *)(uintptr_t)(sum(n) & 0xffff);
}

static void on_alarm(int sig)
{
	work(1, 2); /* a probe in a handler, which may have interrupted another probe */
}

static int do_threads(uint64_t n)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const struct itimerspec every = { { 0, 200000 }, { 0, 200000 } };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	uint64_t want = sum(n) & 0xffff, wrong = 0;
	timer_t timer;
	jmp_buf env;

	sigaction(SIGALRM, &sa, NULL);
	timer_create(CLOCK_MONOTONIC, &ev, &timer);
	timer_settime(timer, 0, &every, NULL);
	for (int round = 0; round < 20; round++) {
		pthread_t t[4];
		void *r, *lib = dlopen("libm.so.6", RTLD_NOW);

		for (int i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, thread, (void *)(uintptr_t)n);
		if (!setjmp(env)) {
			recurse(3);
			longjmp(env, 1);
		}
		for (int i = 0; i < 4; i++) {
			pthread_join(t[i], &r);
			wrong += (uintptr_t)r != want;
		}
		if (lib)
			dlclose(lib);
	}
	timer_delete(timer);
	printf("%llu wrong\n", (unsigned long long)wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(uint64_t n);
	} modes[] = {
		{ "work", do_work }, { "mix", do_mix },         { "faults", do_faults },
		{ "die", do_die },   { "fork", do_fork },       { "exec", do_exec },
		{ "late", do_late }, { "threads", do_threads },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (argc > 2 && !strcmp(argv[1], modes[i].name))
			return modes[i].run(strtoull(argv[2], NULL, 0));
	fprintf(stderr, "usage: inside MODE N\n");
	return 99;
}
