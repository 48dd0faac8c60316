/* Follows a thread that executes another program, and the program's first steps. PTRACE_O_TRACEEXEC
 * stops the thread before the program's first instruction. From there it runs from one system call
 * to the next until its dynamic linker is finished. If the tracer is killed at any time, the thread
 * runs on undisturbed. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/starved.h"
#include "target_private.h"

enum { EXEC_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD, LET_GO_MS = 100 };
/* arch_prctl(2), set_tid_address(2), and a call made after the kernel knows the thread pointer. */
enum { KNOWN_CALLS = 3 };
/* Limit of the whole start, in multiples of the limit between two system calls. */
enum { STARTS_MAX = 6 };
/* The time without a processor that extends a limit, at most, in the same multiples. */
enum { STARVED_MAX = 60 };

struct err *control_exec_watch(pid_t tid, pid_t pid)
{
	bool seized;
	int code;

	(void)control_settle();
	control_rescue_begin();
	seized = control_seize_running(NULL, tid, EXEC_OPTIONS);
	code = errno;
	control_rescue_end();
	if (!seized)
		return err_errno(code, "cannot follow thread %d", (int)tid);
	control_follow(tid, pid);
	return NULL;
}

/* Continues from a stop that was not awaited. Delivers signals, and leaves a stopped process
 * stopped. */
static void pass_on(pid_t tid, int status, enum __ptrace_request how)
{
	bool stays = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;

	if (stays)
		ptrace(PTRACE_LISTEN, tid, 0, 0);
	else
		ptrace(how, tid, 0, status >> 16 ? 0 : WSTOPSIG(status) & 0x7f);
}

/* Looks for the thread's stop. The thread has its own number until it has executed the program, and
 * then its process's. */
static enum control_exec exec_look(pid_t tid, pid_t pid)
{
	int status;
	pid_t r = control_waitpid(tid, &status);

	if (r == 0)
		return CONTROL_EXEC_NOT_YET;
	if (r < 0 && (tid == pid || control_followed_ended(tid)))
		return CONTROL_EXEC_GONE;
	if (r < 0) {
		r = control_waitpid(pid, &status);
		if (r <= 0) /* it is just executing */
			return CONTROL_EXEC_NOT_YET;
	}
	if (!WIFSTOPPED(status))
		return CONTROL_EXEC_GONE;
	if (status >> 16 == PTRACE_EVENT_EXEC)
		return CONTROL_EXEC_DONE;
	pass_on(r, status, PTRACE_CONT);
	return CONTROL_EXEC_NOT_YET;
}

enum control_exec control_exec_look(pid_t tid, pid_t pid)
{
	enum control_exec r = exec_look(tid, pid);

	if (r != CONTROL_EXEC_NOT_YET)
		control_unfollow(tid);
	return r;
}

void control_exec_forget(pid_t tid)
{
	int status;

	control_unfollow(tid);
	(void)control_waitpid(tid, &status);
}

/* The start of a program. */
struct start {
	pid_t pid;
	uint64_t limit;   /* ns: of the time from one system call to the next */
	uint64_t begun;   /* now_ns() */
	uint64_t starved; /* starved_sum() then */
	uint64_t ran;     /* starved_ran_ns() then */
};

/* The time without a processor of the program and of this thread, which continues it. */
static uint64_t starved_sum(pid_t pid)
{
	return starved_ns(pid) + starved_ns(gettid());
}

/* Returns true when the deadline has passed, and not because no processor was free. */
static bool is_late(const struct start *s, uint64_t deadline)
{
	const uint64_t now = now_ns(), most = STARVED_MAX * s->limit;
	uint64_t starved;

	if (now <= deadline)
		return false;
	if (now < deadline + most && starved_is_ready(s->pid) &&
	    starved_ran_ns(s->pid) - s->ran < s->limit)
		return false;
	starved = starved_sum(s->pid);
	starved = starved > s->starved ? starved - s->starved : 0; /* it may have ended */
	return now > deadline + (starved < most ? starved : most);
}

/* Runs the thread to the end of a system call. Returns 1 when it is there, 0 when the deadline has
 * passed and the thread still runs, whatever stops and signals come, and -1 when it has ended. */
static int next_call(const struct start *s, bool *inside)
{
	const uint64_t end = s->begun + STARTS_MAX * s->limit, own = now_ns() + s->limit;
	const uint64_t deadline = own < end ? own : end;
	const pid_t pid = s->pid;

	if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0)
		return -1;
	for (;;) {
		int status;

		if (is_late(s, deadline))
			return 0;
		if (!control_wait(pid, &status, deadline))
			continue;
		if (!WIFSTOPPED(status))
			return -1;
		if (status >> 16 == 0 && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			*inside = !*inside;
			if (!*inside)
				return 1;
			ptrace(PTRACE_SYSCALL, pid, 0, 0);
		} else {
			pass_on(pid, status, PTRACE_SYSCALL);
		}
	}
}

/* Returns true while the dynamic linker has its list of libraries mapped. */
static bool has_list(const struct control *c)
{
	cleanup_free char *maps = NULL;
	size_t n;

	return !err_drop(control_proc(c, "maps", &maps, &n)) && strstr(maps, "/ld.so.cache");
}

/* Returns true when a new program, which is at the end of a system call if it is not `inside` one,
 * has come to the place where it is held. known: the number of calls since it had a thread
 * pointer. */
static bool has_begun(struct control *c, bool relocated, bool inside, int known,
		      const struct user_regs_struct *r)
{
	if (!control_auxv(c, AT_BASE))
		return !inside;
	if (known < KNOWN_CALLS || !relocated)
		return known >= KNOWN_CALLS;
	return (known == KNOWN_CALLS || r->orig_rax == SYS_munmap) && !has_list(c);
}

struct err *control_exec_hold(pid_t pid, int timeout_ms, bool relocated, struct control **ret)
{
	const struct start start = { pid, (uint64_t)timeout_ms * 1000000, now_ns(),
				     starved_sum(pid), starved_ran_ns(pid) };
	struct user_regs_struct r = { 0 };
	struct control *c = NULL;
	struct err *e = control_new(pid, &c);
	bool inside = true;      /* inside the execve(2) itself */
	int come = 1, known = 0; /* known: calls that ended since it had a thread pointer */

	e = e ?: control_open_mem(c);
	e = e ?: control_check_class(c);
	while (!e && come > 0 && !has_begun(c, relocated, inside, known, &r)) {
		come = next_call(&start, &inside);
		if (come > 0 && ptrace(PTRACE_GETREGS, pid, 0, &r) < 0)
			come = -1;
		known += r.fs_base != 0;
	}
	if (!e && come > 0) {
		e = control_hold(c);
	} else if (!e && !come) {
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		e = err_new(ETIMEDOUT, "process %d (%s) is slow to start", (int)pid, c->name);
	} else if (!e) {
		e = control_gone(c);
	}
	if (e) {
		c->threads.n = 0;
		c->stopped = false;
		control_free(c);
		control_let_go_later(pid, pid);
		(void)control_settle();
		return e;
	}
	*ret = c;
	return NULL;
}

bool control_exec_comes(pid_t tid)
{
	cleanup_free char *call = control_task_file(tid, tid, "syscall");
	long nr = -1;

	if (!call)
		return false;
	return !strncmp(call, "running", 7) ||
	       (sscanf(call, "%ld", &nr) == 1 && (nr == SYS_execve || nr == SYS_execveat));
}

void control_exec_leave(pid_t tid, pid_t pid)
{
	uint64_t end = now_ns() + (uint64_t)LET_GO_MS * 1000000;

	const bool ended = control_followed_ended(tid);

	control_unfollow(tid);
	if (ended)
		return;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	control_let_go_later(tid, pid);
	while (!control_settle() && now_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}
