/* A thread that executes another program, and that program's first steps. PTRACE_O_TRACEEXEC stops
 * it where nothing of the program has run; from there it goes on from one system call to the next
 * until its dynamic linker has done its work. Whoever does this may be killed at any time: the
 * thread runs on as if nothing had been. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "internal.h"

enum { EXEC_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD, LET_GO_MS = 100 };
/* arch_prctl(2), set_tid_address(2), and one that comes when the thread knows its number. */
enum { KNOWN_CALLS = 3 };
/* How much longer than between two system calls a program is waited for in all. */
enum { STARTS_MAX = 6 };

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

/* A stop that is not the one waited for: signals are delivered, a stopped process stays so. */
static void pass_on(pid_t tid, int status, enum __ptrace_request how)
{
	bool stays = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;

	if (stays)
		ptrace(PTRACE_LISTEN, tid, 0, 0);
	else
		ptrace(how, tid, 0, status >> 16 ? 0 : WSTOPSIG(status) & 0x7f);
}

/* It has its own number until it has executed, and then its process's. */
static enum control_exec look(pid_t tid, pid_t pid)
{
	int status;
	pid_t r = control_waitpid(tid, &status);

	if (r == 0)
		return CONTROL_EXEC_NOT_YET;
	if (r < 0 && (tid == pid || control_followed_ended(tid)))
		return CONTROL_EXEC_GONE;
	if (r < 0) {
		r = control_waitpid(pid, &status);
		if (r <= 0) /* just now */
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
	enum control_exec r = look(tid, pid);

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

/* Runs on to the end of a system call. 1: it has come to one; 0: the deadline has passed and it
 * runs still, however many stops and signals come; -1: it has ended. */
static int next_call(pid_t pid, bool *inside, uint64_t deadline)
{
	if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0)
		return -1;
	for (;;) {
		int status;

		if (now_ns() > deadline || !control_wait(pid, &status, deadline))
			return 0;
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

struct err *control_exec_hold(pid_t pid, int timeout_ms, struct control **ret)
{
	const uint64_t ns = (uint64_t)timeout_ms * 1000000, end = now_ns() + STARTS_MAX * ns;
	struct user_regs_struct r = { 0 };
	struct control *c = NULL;
	struct err *e = control_new(pid, &c);
	bool inside = true;      /* of the execve(2) itself */
	int come = 1, known = 0; /* known: calls that have ended since it had a thread pointer */

	if (!e)
		e = control_open_mem(c);
	if (!e)
		e = control_check_class(c);
	while (!e && come > 0 && (control_auxv(c, AT_BASE) ? known < KNOWN_CALLS : inside)) {
		const uint64_t deadline = now_ns() + ns;

		come = next_call(pid, &inside, deadline < end ? deadline : end);
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
