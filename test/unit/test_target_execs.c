/* serial: threads under control that execute another program. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "base/starved.h"
#include "target_child.h"

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

/* Returns the value of a line of /proc/PID/task/TID/status, or "". */
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

/* A thread of a process is in the middle of execve(2). It waits until the other thread, which this
 * process traces, is reaped. */
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

/* The thread is left in the middle of the call, and then gets its process's number. The new program
 * runs untraced. */
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
	ok(control_exec_hold(pid, 10000, false, &c));
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	control_free(c);
	until_status(pid, pid, "TracerPid:", "0");
	end(pid);
	munmap(t, 4096);
}

/* --- a machine without a free processor --- */

enum { HOGS = 3, START_MS = 100 };

static void spins(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

/* The calling process may run on this processor alone from now on. */
static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void waits_and_executes(void *arg)
{
	const int *fd = arg;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!read(fd[0], &byte, 1);
	execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(1);
}

/* The limit of a program's start leaves out the time in which other processes have its
 * processor. */
static void test_exec_starved(void **state)
{
	cpu_set_t before;
	pid_t hogs[HOGS], pid;
	enum control_exec what;
	struct control *c;
	int fd[2];

	if (!starved_ns(getpid()) && access("/proc/self/schedstat", R_OK))
		skip(); /* the kernel does not count it */
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_here();
	for (int i = 0; i < HOGS; i++)
		hogs[i] = child_of(spins, NULL);
	pid = child_of(waits_and_executes, fd);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 15), 0);
	ok(control_exec_watch(pid, pid));
	assert_int_equal(write(fd[1], "x", 1), 1);
	while ((what = control_exec_look(pid, pid)) == CONTROL_EXEC_NOT_YET)
		usleep(1000);
	assert_int_equal(what, CONTROL_EXEC_DONE);
	ok(control_exec_hold(pid, START_MS, false, &c));
	control_free(c);
	end(pid);
	for (int i = 0; i < HOGS; i++)
		end(hogs[i]);
	close(fd[0]);
	close(fd[1]);
}

/* --- a vfork child that executes a program while it is seized --- */

struct vfork_child { /* shared; numbers of the child's threads */
	volatile pid_t executes, other;
	volatile bool go, held;
};

static void nap(void)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Runs in the parent's memory, with its thread pointer: makes system calls only. */
static int second_thread(void *arg)
{
	((struct vfork_child *)arg)->other = (pid_t)syscall(SYS_gettid);
	for (;;)
		nap();
	return 0;
}

static void vforks(void *arg)
{
	enum { STACK = 65536 };
	static uint8_t stack[STACK] __attribute__((aligned(16)));
	static char *const argv[] = { "sleep", "1000", NULL };
	struct vfork_child *s = arg;

	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		clone(second_thread, stack + STACK,
		      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			      CLONE_SYSVSEM,
		      arg);
		s->executes = (pid_t)syscall(SYS_getpid);
		while (!s->go)
			nap();
		execv("/bin/sleep", argv);
		_exit(1);
	}
	sleeps(NULL);
}

struct reaper {
	struct vfork_child *s;
	pid_t tracer;
};

/* Traces the child's second thread, so that execve(2) waits for its end to be reaped. Reaps it when
 * the tracer waits in PTRACE_SEIZE of the child. */
static void reaps(void *arg)
{
	const struct reaper *r = arg;
	cleanup_free char *path = xasprintf("/proc/%d/syscall", r->tracer),
			  *begin = xasprintf("101 0x4206 0x%x ", r->s->executes);
	char line[128] = "";

	if (ptrace(PTRACE_SEIZE, r->s->other, 0, 0))
		_exit(1);
	r->s->held = true;
	while (strncmp(line, begin, strlen(begin))) {
		FILE *f = fopen(path, "r");

		if (!f || !fgets(line, sizeof(line), f))
			_exit(2);
		fclose(f);
		usleep(200);
	}
	if (waitpid(r->s->other, NULL, __WALL) != r->s->other)
		_exit(3);
}

/* PTRACE_SEIZE waits until the new program is there, and then holds that program, which may be
 * setuid. control_stop() lets go of it at once, does not count it as a thread of the process, and
 * changes nothing in it. */
static void test_guest_executes(void **state)
{
	struct vfork_child *s =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = child_of(vforks, s), reaper;
	struct control_thread *t;
	struct control *c;
	uint32_t n = 0;
	int status;

	for (int i = 0; (!s->executes || !s->other) && i < 10000; i++)
		usleep(1000);
	assert_true(s->executes && s->other);
	reaper = child_of(reaps, &(struct reaper){ s, getpid() });
	for (int i = 0; !s->held && i < 10000; i++)
		usleep(1000);
	assert_true(s->held);
	s->go = true;
	until_status(s->executes, s->other, "State:", "Z");
	c = stopped(pid);
	assert_int_equal(waitpid(reaper, &status, 0), reaper);
	assert_int_equal(status, 0);
	t = control_threads(c, &n);
	assert_int_equal(n, 1);
	assert_int_equal(t->tid, pid);
	assert_false(t->blocked);
	until_status(s->executes, s->executes, "Name:", "sleep");
	assert_string_equal(status_line(s->executes, s->executes, "TracerPid:"), "0");
	assert_int_equal(call(c, SYS_getpid, 0, 0, 0, 0), pid);
	until_status(s->executes, s->executes, "State:", "S");
	control_free(c);
	kill(s->executes, SIGKILL);
	end(pid);
	munmap(s, 4096);
}

/* The readers of memory leave a thread behind (base/procmem.h). A fork may come while it holds a
 * lock of the sanitizer's, which nobody in the child gives back. So each test has a process. */
static int run_alone(const struct CMUnitTest *test)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec_left_half_way),
		cmocka_unit_test(test_exec_followed),
		cmocka_unit_test(test_exec_starved),
		cmocka_unit_test(test_guest_executes),
	};
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		failed |= run_alone(&tests[i]);
	return failed;
}
