/* serial: processes under control: stopped, changed, let go, and what is refused. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "program/target/target.h"
#include "unit.h"

static pid_t child_of(void (*run)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(arg);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void sleeps(void *arg)
{
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void ok(struct err *e)
{
	if (e)
		print_error("%s\n", e->text);
	assert_null(e);
}

static struct control *stopped(pid_t pid)
{
	struct control *c;

	ok(control_open(pid, &c));
	ok(control_stop(c, 5000));
	return c;
}

static int64_t call(struct control *c, long nr, uint64_t a, uint64_t b, uint64_t d, uint64_t f)
{
	int64_t got = -1;

	ok(control_syscall(c, nr, (uint64_t[6]){ a, b, d, f, (uint64_t)-1, 0 }, &got));
	return got;
}

/* --- what is refused, in one line each --- */

static void refused(pid_t pid, const char *why)
{
	struct control *c = NULL;
	struct err *e = control_open(pid, &c);

	assert_non_null(e);
	if (!strstr(e->text, why))
		print_error("%s\n", e->text);
	assert_non_null(strstr(e->text, why));
	assert_null(strchr(e->text, '\n'));
	err_free(e);
}

static void is_undumpable(void *arg)
{
	prctl(PR_SET_DUMPABLE, 0);
	if (write(*(int *)arg, "x", 1) != 1)
		_exit(1);
	sleeps(NULL);
}

static void as_nobody(void *arg)
{
	pid_t *pids = arg;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(77);
	refused(pids[0], "belongs to root");
	/* its own, protected */
	int fds[2];
	char byte;
	pid_t pid;

	if (pipe(fds))
		_exit(1);
	pid = child_of(is_undumpable, &fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		_exit(1);
	refused(pid, "is protected");
	end(pid);
	/* its own: permitted without any privilege */
	prctl(PR_SET_DUMPABLE, 1);
	pid = child_of(sleeps, NULL);
	struct control *c = stopped(pid);

	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	control_free(c);
	end(pid);
}

static void test_refused(void **state)
{
	pid_t pid = child_of(sleeps, NULL), other;
	int status;

	refused(0, "is no process");
	refused(getpid(), "control itself");
	refused(2147483000, "there is no process 2147483000");
	if (access("/proc/2/status", R_OK) == 0)
		refused(2, "is a kernel thread");

	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	refused(pid, "(test_target_con): a process has one tracer at a time");
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, &status, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	if (geteuid() == 0) {
		other = child_of(as_nobody, &pid);
		waitpid(other, &status, 0);
		assert_int_equal(status, 0);
	}
	end(pid);
	refused(pid, "there is no process");
}

/* --- system calls and memory --- */

static void test_syscall_and_memory(void **state)
{
	pid_t pid = child_of(sleeps, NULL);
	struct control *c = stopped(pid);
	const struct mappings *m;
	uint32_t found = 0;
	char text[6] = "";
	int64_t at;

	at = call(c, SYS_mmap, 0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
	assert_true(at > 0);
	ok(control_write(c, (uint64_t)at, "hello", 6)); /* read-only */
	ok(control_read(c, (uint64_t)at, text, 6));
	assert_string_equal(text, "hello");
	ok(control_maps(c, &m));
	for (uint32_t i = 0; i < m->n; i++)
		found += m->v[i].start == (uint64_t)at && m->v[i].read && !m->v[i].write &&
			 !m->v[i].exec && !m->v[i].inode && !m->v[i].path[0];
	assert_int_equal(found, 1);
	assert_int_equal(call(c, SYS_munmap, (uint64_t)at, 8192, 0, 0), 0);
	assert_int_equal(call(c, SYS_close, 4711, 0, 0, 0), -EBADF);
	assert_true(control_auxv(c, AT_ENTRY) != 0);
	assert_int_equal(control_auxv(c, 4711), 0);
	struct err *e = control_read(c, (uint64_t)at, text, 6);

	assert_non_null(e);
	err_free(e);
	/* again after it ran */
	ok(control_resume(c));
	ok(control_stop(c, 5000));
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	control_free(c);
	end(pid);
}

/* The end of an executable page that held the stub is as it was. */
static void test_nothing_stays(void **state)
{
	pid_t pid = child_of(sleeps, NULL);
	struct control *c = stopped(pid);
	const struct mappings *m;
	uint8_t before[64][32], after[32];
	uint64_t at[64];
	uint32_t k = 0;

	ok(control_maps(c, &m));
	for (uint32_t i = 0; i < m->n && k < 64; i++)
		if (m->v[i].read && m->v[i].exec && !m->v[i].write && m->v[i].inode) {
			at[k] = m->v[i].end - 32;
			ok(control_read(c, at[k], before[k], 32));
			k++;
		}
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	ok(control_resume(c));
	assert_true(k > 0);
	for (uint32_t i = 0; i < k; i++) {
		ok(control_read(c, at[i], after, 32));
		assert_memory_equal(before[i], after, 32);
	}
	control_free(c);
	end(pid);
}

/* --- job control --- */

static void test_group_stop_stays(void **state)
{
	pid_t pid = child_of(sleeps, NULL);
	struct control *c;
	siginfo_t info;
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	c = stopped(pid);
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	ok(control_resume(c));
	usleep(20000);
	/* still stopped, and nothing was told to its parent */
	cleanup_free char *path = xasprintf("/proc/%d/stat", pid);
	FILE *f = fopen(path, "r");
	char state_now = 0;

	assert_int_equal(fscanf(f, "%*d %*s %c", &state_now), 1);
	fclose(f);
	assert_int_equal(state_now, 'T');
	assert_int_equal(waitpid(pid, &status, WUNTRACED | WCONTINUED | WNOHANG), 0);
	kill(pid, SIGCONT);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WCONTINUED), 0);
	assert_int_equal(info.si_code, CLD_CONTINUED);
	control_free(c);
	end(pid);
}

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

/* The process's stack pointer is at words of which every second is a frame's first, with this
 * return address or, 0, one that is never the same. */
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

/* However many there are, few are looked at, and the process is refused. */
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
		assert_true(reads_made() - before <= 2 * 20000);
		control_free(c);
		end(pid);
		munmap(seen, 4096);
	}
}

/* --- text --- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void test_patch_text(void **state)
{
	enum { N = 10000, STRIDE = 64, SIZE = N * STRIDE };
	static struct control_patch p[N];
	uint8_t *text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0),
		have[16];
	uint32_t skipped;
	struct control *c;
	uint64_t best = UINT64_MAX;
	pid_t pid;

	memset(text, 0x90, SIZE);
	assert_int_equal(mprotect(text, SIZE, PROT_READ | PROT_EXEC), 0);
	pid = child_of(sleeps, NULL);
	c = stopped(pid);
	for (uint32_t i = 0; i < N; i++) {
		p[i] = (struct control_patch){ .addr = (uintptr_t)text + i * STRIDE + 7, .len = 9 };
		memset(p[i].expect, 0x90, 9);
		memset(p[i].put, 0xcc, 9);
	}
	p[63].addr = (uintptr_t)text + 4096 - 3; /* across pages */
	p[64].addr = (uintptr_t)text + 4096 + 20;
	p[127].addr = (uintptr_t)text + 2 * 4096 - 1; /* one byte in front of the boundary */
	p[128].addr = (uintptr_t)text + 2 * 4096 + 20;
	p[200].expect[8] = 0; /* holds something else */
	for (int i = 0; i < 6; i++) {
		uint64_t begun = now_ns(), took;

		ok(control_patch_text(c, p, N, &skipped));
		took = now_ns() - begun;
		best = took < best ? took : best;
		assert_int_equal(skipped, i % 2 ? 1 : 2);
		if (i == 0) {
			assert_true(p[127].skipped);
			assert_true(p[200].skipped);
			assert_false(p[63].skipped);
			ok(control_read(c, p[63].addr, have, 10));
			assert_memory_equal(have, "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\x90", 10);
			ok(control_read(c, p[127].addr, have, 10));
			assert_memory_equal(have, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 10);
		}
		for (uint32_t k = 0; k < N; k++) { /* and back */
			uint8_t t[9];

			if (k == 200 || k == 127)
				continue;
			memcpy(t, p[k].expect, 9);
			memcpy(p[k].expect, p[k].put, 9);
			memcpy(p[k].put, t, 9);
		}
		if (i % 2 == 0) /* already what it is to be */
			memset(p[200].put, 0x90, 9);
		else
			memset(p[200].put, 0xcc, 9);
	}
	print_message("%d patches on %d pages: %.3f ms at best\n", N, SIZE / 4096,
		      (double)best / 1e6);
	control_free(c);
	end(pid);
	munmap(text, SIZE);
}

/* --- start --- */

static void test_start(void **state)
{
	for (int at_entry = 0; at_entry < 2; at_entry++) {
		struct control *c;
		struct control_thread *t;
		const struct mappings *m;
		uint32_t n, libc = 0;
		int status;
		pid_t pid;

		ok(control_start((char *[]){ "/bin/sh", "-c", "exit 7", NULL }, at_entry, &c));
		pid = control_pid(c);
		t = control_threads(c, &n);
		assert_int_equal(n, 1);
		assert_int_equal(t->regs.rip == control_auxv(c, AT_ENTRY), at_entry);
		ok(control_maps(c, &m));
		for (uint32_t i = 0; i < m->n; i++)
			libc += strstr(m->v[i].path, "libc.so") != NULL;
		assert_int_equal(libc > 0, at_entry);
		assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
		ok(control_resume(c));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 7);
		control_free(c);
	}
	struct control *c;
	struct err *e = control_start((char *[]){ "/nonexistent/program", NULL }, true, &c);

	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	assert_non_null(strstr(e->text, "cannot run /nonexistent/program"));
	err_free(e);
}

/* Killed while it holds a program that it started: the program goes too, and does not stay
 * stopped. */
static void test_start_killed(void **state)
{
	pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t tracer = fork();

	if (tracer == 0) {
		struct control *c;

		if (control_start((char *[]){ "/bin/sleep", "1000", NULL }, true, &c))
			_exit(1);
		*shared = control_pid(c);
		sleeps(NULL);
	}
	while (!*(volatile pid_t *)shared)
		usleep(1000);
	end(tracer);
	for (int i = 0; i < 1000 && kill(*shared, 0) == 0; i++) {
		cleanup_free char *path = xasprintf("/proc/%d/stat", *shared);
		FILE *f = fopen(path, "r");
		char s = 'Z';

		if (f && fscanf(f, "%*d %*s %c", &s) != 1)
			s = 'Z';
		if (f)
			fclose(f);
		if (s == 'Z') /* nobody reaps it here */
			break;
		usleep(1000);
		assert_true(i < 999);
	}
	munmap(shared, 4096);
}

/* --- a glance at one thread --- */

static volatile uint64_t *turning; /* shared */

static void turns(void *arg)
{
	for (uint64_t x = 1;; x = x * 3 + 1) {
		__asm__ volatile("" : : "r"(x));
		if (*turning != 2)
			*turning = 1;
	}
}

/* What the thread is made to do: as after a call from where it was. */
static void went_there(void)
{
	*turning = 2;
	for (;;)
		pause();
}

struct seen {
	int n;
	uint64_t rip;
	bool send;
};

static bool glanced(void *arg, struct user_regs_struct *regs)
{
	struct seen *s = arg;

	s->n++;
	s->rip = regs->rip;
	if (!s->send)
		return false;
	regs->rsp = (regs->rsp - 256) & ~15ull;
	regs->rsp -= 8;
	regs->rip = (uintptr_t)went_there;
	return true;
}

/* A thread that computes is seen, runs on untouched, or goes where it is sent; one in a system call
 * is left alone. */
static void test_glance(void **state)
{
	pid_t asleep, busy;
	struct seen s = { 0 };
	int status;

	turning = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	asleep = child_of(sleeps, NULL);
	busy = child_of(turns, NULL);
	while (!*turning)
		usleep(1000);
	usleep(10000);
	for (int i = 0; i < 20; i++) {
		assert_false(control_glance(asleep, asleep, 2000, glanced, &s));
		assert_int_equal(s.n, 0);
	}
	for (int i = 0; i < 20; i++) {
		assert_false(control_glance(busy, busy, 2000, glanced, &s));
		*turning = 0;
		for (int k = 0; !*turning && k < 5000; k++)
			usleep(1000);
		assert_int_equal(*turning, 1); /* it runs on */
	}
	assert_int_equal(s.n, 20);
	assert_true(s.rip >= (uintptr_t)turns && s.rip < (uintptr_t)turns + 1024);
	s.send = true;
	assert_true(control_glance(busy, busy, 2000, glanced, &s));
	for (int k = 0; *turning != 2 && k < 5000; k++)
		usleep(1000);
	assert_int_equal(*turning, 2);
	assert_int_equal(waitpid(asleep, &status, WNOHANG), 0);
	assert_int_equal(waitpid(busy, &status, WNOHANG), 0);
	end(asleep);
	end(busy);
	assert_false(control_glance(busy, busy, 100, glanced, &s));
	munmap((void *)turning, 4096);
}

/* --- threads that execute a program --- */

struct two_threads { /* shared */
	volatile pid_t executes, other;
	volatile bool go;
};

static void *waits_for_ever(void *arg)
{
	((struct two_threads *)arg)->other = gettid();
	for (;;)
		pause();
	return NULL;
}

static void *executes_sleep(void *arg)
{
	struct two_threads *t = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t->executes = gettid();
	while (!t->go)
		usleep(1000);
	execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(1);
}

static void two_threads(void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, waits_for_ever, arg) ||
	    pthread_create(&t, NULL, executes_sleep, arg))
		_exit(1);
	sleeps(NULL);
}

/* The value of a line of /proc/PID/task/TID/status, "" when there is none. */
static const char *status_line(pid_t pid, pid_t tid, const char *key)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/status", pid, tid);
	static char line[256];
	FILE *f = fopen(path, "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, key, strlen(key));
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return found ? line + strlen(key) + strspn(line + strlen(key), "\t ") : "";
}

static void until_status(pid_t pid, pid_t tid, const char *key, const char *begin)
{
	for (int i = 0; strncmp(status_line(pid, tid, key), begin, strlen(begin)); i++) {
		(void)control_settle();
		if (i == 10000)
			fail_msg("%s is \"%s\", not %s", key, status_line(pid, tid, key), begin);
		usleep(1000);
	}
}

/* A process whose thread is in the middle of execve(2): that waits until somebody waits for the
 * other thread, which this process traces. */
static pid_t in_execve(struct two_threads *t)
{
	pid_t pid = child_of(two_threads, t);

	for (int i = 0; (!t->executes || !t->other) && i < 10000; i++)
		usleep(1000);
	assert_true(t->executes && t->other);
	assert_int_equal(ptrace(PTRACE_SEIZE, t->other, 0, 0), 0);
	ok(control_exec_watch(t->executes, pid));
	t->go = true;
	until_status(pid, t->other, "State:", "Z");
	return pid;
}

/* It is left in the middle of the call, and gets its process's number then: the new program runs,
 * and nobody traces it. */
static void test_exec_left_half_way(void **state)
{
	struct two_threads *t =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = in_execve(t);

	assert_int_equal(control_exec_look(t->executes, pid), CONTROL_EXEC_NOT_YET);
	control_exec_leave(t->executes, pid);
	assert_false(control_settle());
	assert_int_equal(waitpid(t->other, NULL, __WALL), t->other);
	until_status(pid, pid, "Name:", "sleep");
	until_status(pid, pid, "TracerPid:", "0");
	assert_true(control_settle());
	until_status(pid, pid, "State:", "S");
	control_free(stopped(pid));
	end(pid);
	munmap(t, 4096);
}

/* It is followed to the end of the call. */
static void test_exec_followed(void **state)
{
	struct two_threads *t =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = in_execve(t);
	enum control_exec what;
	struct control *c;

	assert_int_equal(waitpid(t->other, NULL, __WALL), t->other);
	for (int i = 0; (what = control_exec_look(t->executes, pid)) == CONTROL_EXEC_NOT_YET; i++) {
		assert_true(i < 10000);
		usleep(1000);
	}
	assert_int_equal(what, CONTROL_EXEC_DONE);
	ok(control_exec_hold(pid, 10000, &c));
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	control_free(c);
	until_status(pid, pid, "TracerPid:", "0");
	end(pid);
	munmap(t, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glance),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_syscall_and_memory),
		cmocka_unit_test(test_nothing_stays),
		cmocka_unit_test(test_group_stop_stays),
		cmocka_unit_test(test_signals_arrive),
		cmocka_unit_test(test_signal_frames),
		cmocka_unit_test(test_forged_frames),
		cmocka_unit_test(test_patch_text),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_start_killed),
		cmocka_unit_test(test_exec_left_half_way),
		cmocka_unit_test(test_exec_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
