/* serial: processes under control: stopped, changed, resumed, and refused. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "base/mem.h"
#include "target_child.h"

/* --- refused processes, in one line each --- */

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

	refused(0, "is not a process");
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

/* Ends with so many descriptors that closing them takes some time. A process releases its memory
 * before it closes its descriptors. */
static void ends_slowly(void *arg)
{
	enum { MANY = 100000 };
	struct rlimit r;
	int fd = eventfd(0, 0);

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	for (int i = 0; i < MANY && fcntl(fd, F_DUPFD, 0) >= 0; i++)
		;
	(void)!write(*(int *)arg, "", 1);
	usleep(2000);
}

/* An ordinary user's process that ends "has ended" at every moment, or can be stopped. */
static void stops_ending(void *arg)
{
	int fds[2], bad = 0;
	char byte;

	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	for (int round = 0; round < 10; round++) {
		struct control *c;
		struct err *e;
		pid_t pid;

		if (pipe(fds))
			_exit(2);
		pid = child_of(ends_slowly, &fds[1]);
		if (read(fds[0], &byte, 1) != 1)
			_exit(3);
		for (bool gone = false; !gone; err_free(e)) {
			e = control_open(pid, &c);
			if (!e) {
				e = control_stop(c, 5000);
				if (!e)
					e = control_resume(c);
				control_free(c);
			}
			gone = e && e->code == ESRCH;
			if (e && !gone && !strstr(e->text, "one tracer at a time")) {
				print_error("%s\n", e->text);
				bad = 4;
				gone = true;
			}
		}
		waitpid(pid, NULL, 0);
		close(fds[0]);
		close(fds[1]);
	}
	_exit(bad);
}

static void test_ends_meanwhile(void **state)
{
	pid_t pid = child_of(stops_ending, NULL);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
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
	/* still stopped, without a signal to its parent */
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
		if (i % 2 == 0) /* already has the new bytes */
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

/* --- text that others change, as the kernel sets and removes uprobes --- */

struct other_writer {
	int mem;
	uint64_t addr;
	uint32_t lost; /* of its writes that remove a breakpoint */
	volatile bool end;
};

static void *writes_between(void *arg)
{
	struct other_writer *w = arg;

	for (uint32_t n = 0; !w->end; n++) {
		const uint8_t i = n % 2 ? 0xcc : 0x55; /* a breakpoint, and what is below it */
		uint8_t had = i;

		assert_int_equal(pwrite(w->mem, &i, 1, (off_t)w->addr), 1);
		for (int k = 0; k < 50 && had == i; k++)
			assert_int_equal(pread(w->mem, &had, 1, (off_t)w->addr), 1);
		w->lost += had == 0xcc && i != 0xcc;
	}
	return NULL;
}

static void test_patch_beside_others(void **state)
{
	enum { N = 64, STRIDE = 4096 / N, ROUNDS = 10000 };
	struct control_patch p[N] = { 0 };
	uint8_t *text =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct other_writer w = { .addr = (uintptr_t)text + 100 };
	uint32_t skipped;
	pthread_t other;
	char path[32];

	memset(text, 0x90, 4096);
	assert_int_equal(mprotect(text, 4096, PROT_READ | PROT_EXEC), 0);
	pid_t pid = child_of(sleeps, NULL);
	struct control *c = stopped(pid);

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	w.mem = open(path, O_RDWR | O_CLOEXEC);
	assert_true(w.mem >= 0);
	assert_int_equal(pthread_create(&other, NULL, writes_between, &w), 0);
	for (int i = 0; i < ROUNDS && !w.lost; i++) {
		for (uint32_t k = 0; k < N; k++) {
			p[k].addr = (uintptr_t)text + k * STRIDE;
			p[k].len = 5;
			memset(p[k].expect, i % 2 ? 0xcc : 0x90, 5);
			memset(p[k].put, i % 2 ? 0x90 : 0xcc, 5);
		}
		ok(control_patch_text(c, p, N, &skipped));
		assert_int_equal(skipped, 0);
	}
	w.end = true;
	pthread_join(other, NULL);
	close(w.mem);
	assert_int_equal(w.lost, 0);
	munmap(text, 4096);
	control_free(c);
	end(pid);
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

		ok(control_start((char *[]){ "/bin/sh", "-c", "exit 7", NULL }, at_entry, 0, &c));
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
	struct err *e = control_start((char *[]){ "/nonexistent/program", NULL }, true, 0, &c);

	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	assert_non_null(strstr(e->text, "cannot run /nonexistent/program"));
	err_free(e);
}

/* The tracer is killed while it holds a program that it started. The program ends too, and does not
 * stay stopped. */
static void test_start_killed(void **state)
{
	pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t tracer = fork();

	if (tracer == 0) {
		struct control *c;

		if (control_start((char *[]){ "/bin/sleep", "1000", NULL }, true, 0, &c))
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
		if (s == 'Z') /* no process reaps it here */
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

/* Runs in the thread, as after a call from its place. */
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

/* A computing thread is shown to fn, and runs on unchanged or where fn sends it. A thread in a
 * system call is left alone. */
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

/* --- processes in the same memory --- */

static int waits_in_memory(void *arg)
{
	sleeps(arg);
	return 0;
}

/* A process that has ended has no memory, and neither have the kernel's threads. */
static void test_sharers(void **state)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid = child_of(sleeps, NULL), ended = fork(), sharer, found;
	siginfo_t info;

	if (!ended)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(control_memory_sharers(ended, &found, 1), 0);
	assert_int_equal(control_memory_sharers(pid, &found, 1), 0);
	assert_int_equal(control_memory_sharers(getpid(), &found, 1), 0);
	sharer = clone(waits_in_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	assert_true(sharer > 0);
	assert_int_equal(control_memory_sharers(getpid(), &found, 1), 1);
	assert_int_equal(found, sharer);
	end(sharer);
	assert_int_equal(control_memory_sharers(getpid(), &found, 1), 0);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
	end(pid);
}

/* --- a thread that gets no CPU --- */

static void spins(void *arg)
{
	for (;;)
		__asm__ volatile("");
}

static bool write_at(const char *folder, const char *file, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static uint64_t times_throttled(const char *folder)
{
	cleanup_free char *path = xasprintf("%s/cpu.stat", folder), *text = NULL;
	unsigned long long n = 0;
	const char *at;

	if (err_drop(io_read_file(path, &text, NULL)))
		return 0;
	at = strstr(text, "nr_throttled ");
	return at && sscanf(at, "nr_throttled %llu", &n) == 1 ? n : 0;
}

/* Makes a group of processes that get 20 ms in each second. Of less, the kernel lets them take
 * several seconds' share before it looks. */
static char *slow_group(void)
{
	static const char *const parents[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup" };

	for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
		char *folder = xasprintf("%s/descry-starved-%d", parents[i], (int)getpid());

		if (!mkdir(folder, 0755)) {
			if (write_at(folder, "cpu.max", "20000 1000000") ||
			    (write_at(folder, "cpu.cfs_period_us", "1000000") &&
			     write_at(folder, "cpu.cfs_quota_us", "20000")))
				return folder;
			rmdir(folder);
		}
		free(folder);
	}
	return NULL;
}

/* A thread that waits for its turn does not stop before; the stop waits for it. */
static void test_starved(void **state)
{
	cleanup_free char *folder = slow_group(), *number = NULL;
	struct control *c;
	struct err *e;
	uint64_t before;
	pid_t pid;

	if (!folder)
		skip();
	pid = child_of(spins, NULL);
	number = xasprintf("%d", (int)pid);
	assert_true(write_at(folder, "cgroup.procs", number));
	assert_null(control_open(pid, &c));
	before = times_throttled(folder);
	while (times_throttled(folder) == before)
		usleep(1000);
	e = control_stop(c, 400);
	control_free(c);
	end(pid);
	assert_int_equal(rmdir(folder), 0);
	ok(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glance),         cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ends_meanwhile), cmocka_unit_test(test_syscall_and_memory),
		cmocka_unit_test(test_nothing_stays),  cmocka_unit_test(test_group_stop_stays),
		cmocka_unit_test(test_patch_text),     cmocka_unit_test(test_patch_beside_others),
		cmocka_unit_test(test_start),          cmocka_unit_test(test_start_killed),
		cmocka_unit_test(test_starved),        cmocka_unit_test(test_sharers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
