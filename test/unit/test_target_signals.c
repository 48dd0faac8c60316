/* serial: signals of processes under control: arriving while stopped, and frames of handlers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "target_child.h"

/* --- signals that come while it is stopped --- */

static volatile sig_atomic_t *taken;
static void take(int sig, siginfo_t *info, void *ctx)
{
	taken[0]++;
	taken[1] = info->si_value.sival_int;
}
static void takes(void *arg)
{
	struct sigaction sa = { .sa_sigaction = take, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGRTMIN, &sa, NULL);
	taken[2] = 1;
	for (;;)
		if (pause() < 0 && errno == EINTR)
			taken[3]++;
}

static void test_signals_arrive(void **state)
{
	struct control *c;
	pid_t pid;

	taken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = child_of(takes, NULL);
	while (!taken[2])
		usleep(100);
	usleep(2000);
	for (int i = 1; i <= 20; i++) {
		c = stopped(pid);
		assert_int_equal(sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i }), 0);
		assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
		control_free(c);
		for (int k = 0; k < 1000 && taken[3] < i; k++)
			usleep(1000);
		assert_int_equal(taken[0], i);
		assert_int_equal(taken[1], i);
		assert_int_equal(taken[3], i); /* pause() came back */
		usleep(500);
	}
	end(pid);
	munmap((void *)taken, 4096);
}

/* --- handlers --- */

static void has_handlers(void *arg)
{
	struct sigaction sa = { .sa_sigaction = take, .sa_flags = SA_SIGINFO };
	volatile sig_atomic_t *ready = arg;

	sigaction(SIGQUIT, &sa, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_DFL);
	*ready = 1;
	sleeps(NULL);
}

static uint64_t handler_of(struct control *c, int sig)
{
	uint64_t at = 2;

	ok(control_signal_handler(c, sig, &at, NULL));
	return at;
}

static void test_handlers(void **state)
{
	volatile sig_atomic_t *ready =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = child_of(has_handlers, (void *)ready);
	struct control *c;
	uint64_t at, flags = 0;

	while (!*ready)
		usleep(100);
	c = stopped(pid);
	ok(control_signal_handler(c, SIGQUIT, &at, &flags));
	assert_int_equal(flags & (SA_SIGINFO | SA_RESTART), SA_SIGINFO);
	assert_int_equal(handler_of(c, SIGQUIT), (uintptr_t)take);
	assert_int_equal(handler_of(c, SIGHUP), (uintptr_t)SIG_IGN);
	assert_int_equal(handler_of(c, SIGUSR2), (uintptr_t)SIG_DFL);
	assert_true(err_drop(control_signal_handler(c, 1000, &at, NULL)));
	control_free(c);
	end(pid);
	munmap((void *)ready, 4096);
}

/* --- signal frames --- */

static uint64_t *seen;
static void spin_in_handler(int sig)
{
	seen[1] = 1;
	while (!seen[2])
		;
	seen[3] = 1;
}
static void spins(void *arg)
{
	char *stack = malloc(65536);
	stack_t ss = { .ss_sp = stack, .ss_size = 65536 };

	if (arg)
		sigaltstack(&ss, NULL);
	sigaction(SIGUSR1,
		  &(struct sigaction){ .sa_handler = spin_in_handler,
				       .sa_flags = arg ? SA_ONSTACK : 0 },
		  NULL);
	seen[0] = 1;
	/* nop x 16, twice: the frame's pc is moved from the first loop to the second */
	__asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, 40(%0)\n\t"
			 "lea 2f(%%rip), %%rax; mov %%rax, 48(%0)\n\t"
			 "1: jmp 1b\n\t"
			 "2: movq $1, 56(%0)"
			 :
			 : "r"(seen)
			 : "rax", "memory");
	sleeps(NULL);
}
static void move_pc(void *arg, uint64_t *pc)
{
	if (*pc == seen[5]) {
		*pc = seen[6];
		++*(int *)arg;
	}
}

static void test_signal_frames(void **state)
{
	for (int alt = 0; alt < 2; alt++) {
		struct control *c;
		int moved = 0;
		pid_t pid, tid = -1;

		seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		pid = child_of(spins, alt ? "alt" : NULL);
		while (!*(volatile uint64_t *)&seen[6])
			usleep(100);
		usleep(5000);
		kill(pid, SIGUSR1);
		while (!*(volatile uint64_t *)&seen[1])
			usleep(100);
		c = stopped(pid);
		struct control_range r = { seen[5], seen[5] + 1 };

		ok(control_refers(c, &r, 1, false, &tid));
		assert_int_equal(tid, pid);
		ok(control_signal_frames(c, move_pc, &moved));
		assert_int_equal(moved, 1);
		ok(control_refers(c, &r, 1, false, &tid));
		assert_int_equal(tid, 0);
		control_free(c);
		seen[2] = 1;
		for (int k = 0; k < 1000 && !*(volatile uint64_t *)&seen[7]; k++)
			usleep(1000);
		assert_int_equal(seen[3], 1);
		assert_int_equal(seen[7], 1);
		end(pid);
		munmap(seen, 4096);
	}
}

/* --- stacks that hold frames which no kernel made --- */

/* mov $15, %rax; syscall, at an address that reads as the segment register of a frame. */
enum { FORGED_RESTORER = 0x7e530033, FORGED_STACK = 4 << 20 };

static void put_restorer(void)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	void *at = (void *)(uintptr_t)(FORGED_RESTORER & ~4095);

	at = mmap(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		_exit(1);
	memcpy((uint8_t *)at + (FORGED_RESTORER & 4095), code, sizeof(code));
}

/* Puts the process's stack pointer at words of which every second begins a frame, with this return
 * address or, for 0, a different one each. */
static void on_forged_stack(void *arg)
{
	uint64_t to = *(uint64_t *)arg, *w;

	put_restorer();
	w = mmap(NULL, FORGED_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 1; i + 1 < FORGED_STACK / 8; i += 2) {
		w[i] = to ? to : (uint64_t)i << 32 | 0x33;
		w[i + 1] = 0;
	}
	seen[0] = 1;
	__asm__ volatile("mov %0, %%rsp\n\t"
			 "1: mov $34, %%eax\n\t" /* pause(2) */
			 "syscall\n\t"
			 "jmp 1b"
			 :
			 : "r"(w)
			 : "memory");
}

static void count_frame(void *arg, uint64_t *pc)
{
	++*(uint64_t *)arg;
}

/* Calls of read(2) and the like that this process has made. */
static uint64_t reads_made(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;
	char line[64];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "syscr: %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static void busy(struct err *e)
{
	assert_non_null(e);
	assert_int_equal(e->code, EBUSY);
	assert_non_null(strstr(e->text, "more signal frames on its stacks"));
	err_free(e);
}

/* The scan looks at few frames, however many there are, and refuses the process. */
static void test_forged_frames(void **state)
{
	for (int real = 0; real < 2; real++) {
		uint64_t to = real ? FORGED_RESTORER : 0, frames = 0, before;
		struct control_range r = { 16, 17 };
		struct control_thread *t;
		pid_t pid, tid = -1;
		struct control *c;
		uint32_t n;

		seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		pid = child_of(on_forged_stack, &to);
		while (!*(volatile uint64_t *)seen)
			usleep(100);
		for (t = NULL, c = NULL; !t || (t->regs.rsp & 4095);) {
			control_free(c);
			c = stopped(pid);
			t = control_threads(c, &n);
		}
		before = reads_made();
		busy(control_signal_frames(c, count_frame, &frames));
		assert_true(frames <= 1024);
		busy(control_refers(c, &r, 1, false, &tid));
		assert_int_equal(tid, -1);
		/* each of its memory, and one before it, whether the page is there */
		assert_true(reads_made() - before <= 2 * 2 * 20000);
		control_free(c);
		end(pid);
		munmap(seen, 4096);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_arrive),
		cmocka_unit_test(test_handlers),
		cmocka_unit_test(test_signal_frames),
		cmocka_unit_test(test_forged_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
