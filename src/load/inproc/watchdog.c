#define _GNU_SOURCE
#include "watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "undo.h"

enum { TRIES = 20, STOP_MS = 2000 };

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Its own session, no terminal, no descriptors but `keep`, which becomes 3. */
static void settle_down(int keep)
{
	int null;

	setsid();
	if (chdir("/") < 0)
		_exit(1);
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	/* a fault of its own is not to be ignored for ever */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	prctl(PR_SET_NAME, "descry-watch");
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
}

/* All of it out of one process; false: not now. */
static bool undo_process(pid_t pid)
{
	struct undo_report r;
	struct control *c;
	struct err *e = control_open(pid, &c);
	bool done = false;

	if (!e) {
		e = undo_all(c, STOP_MS, &r);
		control_free(c);
		done = !e && !r.busy;
	}
	if (e && e->code == ESRCH)
		done = true;
	err_free(e);
	return done;
}

/* The list is in memory that the traced processes can write: a pid in it is only looked at. */
static void undo_processes(struct wire_process *list, pid_t tracer)
{
	for (int i = 0; i < TRIES; i++) {
		bool all = true;

		for (uint32_t k = 0; k < WIRE_PROCESSES_MAX; k++) {
			uint32_t state = __atomic_load_n(&list[k].state, __ATOMIC_ACQUIRE);
			pid_t pid = (pid_t)list[k].pid;

			if ((state != WIRE_PROCESS_TRACED && state != WIRE_PROCESS_FORKED) || pid <= 1 ||
			    pid == tracer || pid == getpid())
				continue;
			if (undo_process(pid))
				__atomic_store_n(&list[k].state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
			else
				all = false;
		}
		if (all)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 << (i < 8 ? i : 8) }, NULL);
		control_settle();
	}
}

static void watch(struct wire_process *list, pid_t tracer, int pidfd)
{
	struct pollfd p;

	settle_down(pidfd);
	p = (struct pollfd){ .fd = 3, .events = POLLIN };
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	undo_processes(list, tracer);
	_exit(0);
}

struct err *watchdog_start(struct wire_area *area, int *ret_pidfd)
{
	struct wire_process *list = (struct wire_process *)area->processes;
	pid_t tracer = getpid(), pid;
	int own = pidfd_of(tracer), fd;

	if (own < 0)
		return err_errno(errno, "watchdog: pidfd_open");
	pid = fork();
	if (pid == 0)
		watch(list, tracer, own);
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
	return control_syscall(c, SYS_prctl, (uint64_t[6]){ PR_SET_PTRACER, area->watchdog_pid }, &got);
}
