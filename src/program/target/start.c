/* Starts a program under control: seizes it before it execs, and holds it right after, or at its
 * entry point. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/clock.h"
#include "target_private.h"

enum { START_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD };

/* Waits to be seized, then execs. Writes the errno of a failure to the pipe. A successful exec
 * closes the pipe. */
static void start_child(char *const argv[], const struct control_as *as, int go, int report)
{
	const struct child c = { .argv = argv,
				 .out = as ? as->output : 0,
				 .user = as ? as->user : NULL };
	char byte;
	int code;

	signal(SIGINT, SIG_DFL);
	if (read(go, &byte, 1) == 1)
		child_exec(&c);
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

struct err *control_cannot_run(const char *name, const struct control_as *as, int error)
{
	if (as && as->user)
		return err_errno(error, "cannot run %s as user %s", name, as->user->name);
	return err_errno(error, "cannot run %s", name);
}

/* Waits for the next stop. Delivers signals in between. */
static bool next_stop(pid_t pid, int *ret_status)
{
	for (;;) {
		if (waitpid(pid, ret_status, __WALL) < 0)
			return false;
		if (!WIFSTOPPED(*ret_status))
			return false;
		if (*ret_status >> 16 == PTRACE_EVENT_EXEC ||
		    (*ret_status >> 16 == 0 && WSTOPSIG(*ret_status) == SIGTRAP))
			return true;
		ptrace(PTRACE_CONT, pid, 0, *ret_status >> 16 ? 0 : WSTOPSIG(*ret_status));
	}
}

/* Runs the program to `entry`, where it puts an int3. The program stops at this trap. */
static struct err *run_to(struct control *c, uint64_t entry)
{
	struct user_regs_struct r;
	uint8_t byte, trap = 0xcc;
	struct err *e;
	int status;

	if (ptrace(PTRACE_GETREGS, c->pid, 0, &r) < 0)
		return control_gone(c);
	if (r.rip == entry)
		return NULL;
	e = control_read(c, entry, &byte, 1);
	e = e ?: control_write_text(c, entry, &trap, 1);
	while (!e) {
		ptrace(PTRACE_CONT, c->pid, 0, 0);
		if (!next_stop(c->pid, &status))
			return err_new(ECHILD, "%s ended before it came to 0x%llx", c->name,
				       (unsigned long long)entry);
		if (ptrace(PTRACE_GETREGS, c->pid, 0, &r) < 0)
			return control_gone(c);
		if (r.rip == entry + 1)
			break;
	}
	r.rip = entry;
	if (!e && ptrace(PTRACE_SETREGS, c->pid, 0, &r) < 0)
		e = control_gone(c);
	return e ?: control_write_text(c, entry, &byte, 1);
}

/* Forks a child, seizes it and lets it exec. *ret_code: errno of the exec. */
static struct err *fork_seized(char *const argv[], const struct control_as *as, pid_t *ret_pid,
			       int *ret_code, bool *ret_forbidden)
{
	int go[2], report[2], status;
	struct err *e = NULL;
	pid_t pid;

	*ret_code = 0;
	*ret_forbidden = false;
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_errno(errno, "pipe");
	if (pipe2(report, O_CLOEXEC) < 0) {
		e = err_errno(errno, "pipe");
		close(go[0]);
		close(go[1]);
		return e;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		start_child(argv, as, go[0], report[1]);
	}
	if (pid < 0)
		e = err_errno(errno, "cannot start %s", argv[0]);
	else if (ptrace(PTRACE_SEIZE, pid, 0, START_OPTIONS) < 0)
		e = err_errno(errno, "cannot control %s", argv[0]);
	else if (write(go[1], "", 1) != 1)
		e = err_errno(errno, "pipe");
	*ret_forbidden = e && (e->code == EPERM || e->code == EACCES || e->code == ENOSYS);
	close(go[0]);
	close(go[1]);
	close(report[1]);
	if (!e && !next_stop(pid, &status)) {
		if (read(report[0], ret_code, sizeof(*ret_code)) == sizeof(*ret_code) && *ret_code)
			e = control_cannot_run(argv[0], as, *ret_code);
		else
			e = err_new(ECHILD, "%s ended before it could be traced", argv[0]);
		pid = -1;
	}
	close(report[0]);
	if (e && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
	}
	*ret_pid = pid;
	return e;
}

/* Takes the only thread from a trap to the usual kind of stop. */
struct err *control_hold(struct control *c)
{
	struct control_thread *t;
	int status = 0;

	if (ptrace(PTRACE_INTERRUPT, c->pid, 0, 0) < 0 || ptrace(PTRACE_CONT, c->pid, 0, 0) < 0 ||
	    !control_wait(c->pid, &status, now_ns() + 10000000000ull) ||
	    !control_wait_interrupt(c->pid, status, now_ns() + 10000000000ull))
		return control_gone(c);
	c->threads.n = 0;
	t = control_add_thread(c, c->pid);
	t->seized = true;
	c->stopped = true;
	if (!control_get_regs(t))
		return control_gone(c);
	return control_stop_more(c, 1000);
}

struct err *control_run_to(struct control *c, uint64_t addr)
{
	struct err *e;

	if (c->service >= 0) /* it is held as far as possible */
		return NULL;
	e = control_put_regs(c);
	e = e ?: run_to(c, addr);
	return e ? e : control_hold(c);
}

struct err *control_start(char *const argv[], bool at_entry, const struct control_as *as,
			  struct control **ret)
{
	struct control *c = NULL;
	struct err *e;
	bool forbidden;
	pid_t pid = 0;
	int code;

	e = fork_seized(argv, as, &pid, &code, &forbidden);
	if (e && forbidden) {
		err_free(e);
		return control_start_served(argv, as, ret);
	}
	if (e)
		return e;
	control_adopt(pid);
	e = control_new(pid, &c);
	e = e ?: control_open_mem(c);
	if (!e && at_entry)
		e = control_check_class(c);
	if (!e && at_entry && control_auxv(c, AT_ENTRY))
		e = run_to(c, control_auxv(c, AT_ENTRY));
	c->own = true;
	e = e ?: control_hold(c);
	if (e) {
		kill(pid, SIGKILL);
		c->threads.n = 0;
		c->stopped = false;
		control_free(c);
		return e;
	}
	*ret = c;
	return NULL;
}
