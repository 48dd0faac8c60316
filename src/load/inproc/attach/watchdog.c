/* Starts the watchdog, which removes the tracer's patches when the tracer has ended. */
#define _GNU_SOURCE
#include "load/inproc/attach/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "load/inproc/patch/bell.h"
#include "load/inproc/state/process_state.h"
#include "load/inproc/undo/undo.h"

enum { STOP_MS = 2000, PAUSE_MAX_MS = 1000, HURRY_MS = 60000 };

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Leaves the tracer's session and terminal, and closes all descriptors but `keep`, which becomes 3.
 * Returns the previous priority. */
static int settle_down(int keep)
{
	int null, nice;

	setsid();
	if (chdir("/") < 0)
		_exit(1);
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	/* an ignored fault of its own would repeat for ever */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	prctl(PR_SET_NAME, "descry-watch");
	/* other programs wait for the watchdog, so it raises its priority where that is
	 * permitted */
	nice = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, -10);
	if (keep != 3) {
		dup2(keep, 3);
		close(keep);
	}
	fcntl(3, F_SETFD, FD_CLOEXEC);
	syscall(SYS_close_range, 4, ~0u, 0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		if (null >= 0 && fd != null)
			dup2(null, fd);
	if (null > 3)
		close(null);
	return nice;
}

/* The area that the watchdog watches. */
struct watched {
	struct wire_process *processes; /* written by the tracer only */
	const struct wire_said *said;   /* may have been written by any traced process */
	struct wire_area *area;
	uint64_t base, inode, code_inode;
	pid_t tracer;
	bool *done; /* of said[]: checked and clean */
};

/* Removes the area from one process. Returns false when that is not possible now. The mappings
 * decide the result, not the errors on the way. When a seccomp filter keeps mappings there, the
 * process counts as done, because its text is restored. */
static bool undo_process(const struct watched *w, pid_t pid)
{
	struct undo_report r = { 0 };
	struct undo_log log = { 0 };
	struct control *c;
	struct err *e = control_open(pid, &c);
	bool done = e && e->code == ESRCH;

	if (!e) {
		e = undo_quiet(c, STOP_MS) ?: undo_strays(c, w->code_inode, w->base, STOP_MS, &r) ?:
			undo_log_own(c, w->area, &log);
		if (!e && undo_is(&log, w->inode, w->code_inode))
			e = undo_restore(c, &log, STOP_MS, &r);
		undo_log_fini(&log);
		control_free(c);
		done = (!e && !r.busy) || (e && e->code == ESRCH);
	}
	err_free(e);
	return done && (r.filtered || !undo_left(pid, w->base, w->inode, w->code_inode));
}

static bool is_other(const struct watched *w, pid_t pid)
{
	return pid > 1 && pid != w->tracer && pid != getpid();
}

/* Restores a process that the tracer attached to or adopted. Returns true when it is clean or has
 * ended. */
static bool undo_traced(const struct watched *w, struct wire_process *p)
{
	const pid_t pid = (pid_t)p->pid;

	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) != WIRE_PROCESS_TRACED ||
	    !is_other(w, pid))
		return true;
	if (procdir_start(pid) == p->started && !undo_process(w, pid))
		return false;
	__atomic_store_n(&p->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	return true;
}

/* Restores a child that the tracer did not adopt before it ended. The child's number is used only
 * when the process with that number has the area mapped. A child in another pid namespace is not
 * found. Returns true when the child is clean. */
static bool undo_child(const struct watched *w, uint32_t i)
{
	const pid_t pid = (pid_t)__atomic_load_n(&w->said[i].own_pid, __ATOMIC_ACQUIRE);

	if (!w->area->follow || w->done[i] || w->processes[i].pid || !is_other(w, pid))
		return true;
	w->done[i] = !undo_left(pid, w->base, w->inode, w->code_inode) ||
		     undo_writes(pid, w->inode, w->code_inode) || undo_process(w, pid);
	return w->done[i];
}

/* Restores children that did not report: see processes_sweep(). Returns true when none is left. */
static bool undo_unsaid(const struct watched *w)
{
	cleanup_dir DIR *d = w->area->follow || processes_filtered(w->area) ? opendir("/proc")
									    : NULL;
	bool all = true;

	for (pid_t pid; procdir_next(d, &pid);)
		if (is_other(w, pid) && undo_left(pid, w->base, w->inode, w->code_inode) &&
		    !undo_writes(pid, w->inode, w->code_inode))
			all &= undo_process(w, pid);
	return all;
}

/* Makes one round over the processes. Returns true when all are clean. */
static bool undo_round(const struct watched *w)
{
	bool all = true;

	for (uint32_t i = 0; i < WIRE_PROCESSES_MAX; i++)
		all &= undo_traced(w, &w->processes[i]) & undo_child(w, i);
	return all && undo_unsaid(w);
}

/* Repeats the rounds until all processes are clean. A debugger may hold a process, or it may be
 * stopped inside a probe, or wait for a child of vfork(). After a minute the watchdog returns to
 * the priority `nice`, because a process can make it wait for ever. */
static void undo_processes(const struct watched *w, int nice)
{
	const uint64_t hurry = now_ns() + (uint64_t)HURRY_MS * 1000000;
	bool hurries = true;
	long pause = 1;

	while (!undo_round(w)) {
		if (hurries && now_ns() > hurry) {
			setpriority(PRIO_PROCESS, 0, nice);
			hurries = false;
		}
		nanosleep(&(struct timespec){ .tv_sec = pause / 1000,
					      .tv_nsec = pause % 1000 * 1000000 },
			  NULL);
		control_settle();
		pause = pause < PAUSE_MAX_MS / 2 ? pause * 2 : PAUSE_MAX_MS;
	}
}

static void watch(const struct watched *w, int pidfd)
{
	const int nice = settle_down(pidfd);
	struct pollfd p;

	p = (struct pollfd){ .fd = 3, .events = POLLIN };
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	__atomic_store_n(&w->area->closing, 1, __ATOMIC_SEQ_CST);
	if (w->area->bell)
		bell_silence((struct inproc_bell *)w->area->bell);
	undo_processes(w, nice);
	_exit(0);
}

struct err *watchdog_start(struct wire_area *area, int *ret_pidfd)
{
	static bool done[WIRE_PROCESSES_MAX];
	struct watched w = { .processes = (struct wire_process *)area->processes,
			     .said = (const struct wire_said *)area->said,
			     .done = done,
			     .area = area,
			     .base = area->base,
			     .inode = undo_inode_here(area->base + WIRE_FACTS),
			     .code_inode = undo_inode_here(area->base),
			     .tracer = getpid() };
	int own = pidfd_of(w.tracer), fd;
	pid_t pid;

	if (own < 0)
		return err_errno(errno, "watchdog: pidfd_open");
	pid = fork();
	if (pid == 0)
		watch(&w, own);
	close(own);
	if (pid < 0)
		return err_errno(errno, "watchdog: fork");
	fd = pidfd_of(pid);
	if (fd < 0) {
		struct err *e = err_errno(errno, "watchdog: pidfd_open");

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return e;
	}
	area->watchdog_pid = (uint32_t)pid;
	*ret_pidfd = fd;
	return NULL;
}

void watchdog_stop(struct wire_area *area, int pidfd)
{
	if (pidfd < 0)
		return;
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	while (waitid(P_PIDFD, (id_t)pidfd, NULL, WEXITED) < 0 && errno == EINTR)
		;
	close(pidfd);
	if (area)
		area->watchdog_pid = 0;
}

struct err *watchdog_permit(struct control *c, const struct wire_area *area)
{
	char scope = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	int64_t got;

	if (fd < 0)
		return NULL;
	if (read(fd, &scope, 1) != 1)
		scope = '0';
	close(fd);
	if (scope != '1' || !area->watchdog_pid)
		return NULL;
	return control_syscall(c, SYS_prctl, (uint64_t[6]){ PR_SET_PTRACER, area->watchdog_pid },
			       &got);
}
