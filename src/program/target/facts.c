/* Reads facts about a process from /proc, and checks whether it may be traced. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "target_private.h"

struct err *control_proc(const struct control *c, const char *file, char **ret_text, size_t *ret_n)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/%s", c->pid, c->alive, file);

	return io_read_file(path, ret_text, ret_n);
}

/* Reads /proc/PID/task/TID/stat from the state letter on into text. Returns false when the thread
 * has ended. */
static bool read_stat(pid_t pid, pid_t tid, char text[512])
{
	char path[64];
	ssize_t n;
	char *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, 511);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	if (!p || p[1] != ' ')
		return false;
	memmove(text, p + 2, strlen(p + 2) + 1);
	return true;
}

char control_thread_state(pid_t pid, pid_t tid)
{
	char text[512];

	return read_stat(pid, tid, text) ? text[0] : 0;
}

/* Returns true for a thread that has released its memory in exit(2), but is no zombie yet, and for
 * a kernel thread. proc_pid_stat(5): field 23 is the size of its memory. */
bool control_without_memory(pid_t pid, pid_t tid)
{
	enum { STATE = 3, VSIZE = 23 };
	char text[512], *p = text;

	if (!read_stat(pid, tid, text))
		return true;
	for (int field = STATE; p && field < VSIZE; field++)
		p = strchr(p + 1, ' ');
	return !p || strtoull(p, NULL, 10) == 0;
}

/* Returns a file of a thread's folder, or NULL when it cannot be read. The caller frees it. */
char *control_task_file(pid_t pid, pid_t tid, const char *file)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/%s", pid, tid, file);
	char *text = NULL;
	struct err *e;
	size_t n;

	e = io_read_file(path, &text, &n);
	if (!e)
		return text;
	err_free(e);
	return NULL;
}

char *control_comm(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/comm", pid);
	char *text = NULL;
	size_t n;

	if (err_drop(io_read_file(path, &text, &n)))
		return xstrdup("?");
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* Returns how long to wait for a process's tracer of this name to detach. Another descry and its
 * watchdog detach within milliseconds. */
uint64_t control_patience(const char *comm)
{
	return strncmp(comm, "descry", 6) ? 50000000 : 2000000000;
}

struct err *control_read_status(pid_t pid, char **ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", pid);
	size_t n;
	struct err *e = io_read_file(path, ret, &n);

	if (e && (e->code == ENOENT || e->code == ESRCH)) {
		err_free(e);
		return err_new(ESRCH, "there is no process %d", pid);
	}
	return e;
}

pid_t control_living_thread(pid_t pid)
{
	cleanup_dir DIR *d = procdir_threads(pid);
	pid_t ending = 0;

	for (pid_t tid; procdir_next(d, &tid);) {
		char state = control_thread_state(pid, tid);

		if (!state || state == 'Z' || state == 'X')
			continue;
		if (!control_without_memory(pid, tid))
			return tid;
		ending = ending ?: tid;
	}
	return ending;
}

static bool capable(int cap)
{
	cleanup_free char *text = NULL;
	struct err *e = control_read_status(getpid(), &text);
	uint64_t bits = e ? 0 : procstatus_mask(text, "CapEff");

	err_free(e);
	return bits >> cap & 1;
}
enum { CAP_PTRACE = 19, CAP_ADMIN = 21 };

static int ptrace_scope(void)
{
	char *text = NULL;
	size_t n;
	struct err *e = io_read_file("/proc/sys/kernel/yama/ptrace_scope", &text, &n);
	int scope = e ? 0 : (int)strtol(text, NULL, 10);

	err_free(e);
	free(text);
	return scope;
}

static char *user_name(uid_t uid)
{
	struct passwd *pw = getpwuid(uid);

	return pw ? xstrdup(pw->pw_name) : xasprintf("uid %u", uid);
}

/* Returns an error with the reason why ptrace(2) refused the process. */
struct err *control_refused(const struct control *c, const char *status, int code)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/mem", c->pid, c->alive);
	uid_t uid = (uid_t)procstatus_number(status, "Uid", 0);
	int scope = ptrace_scope();
	struct stat st;

	if (uid != geteuid() && !capable(CAP_PTRACE)) {
		cleanup_free char *name = user_name(uid);

		return err_new(
			EACCES,
			"process %d (%s) belongs to %s: tracing it needs CAP_SYS_PTRACE (root)",
			c->pid, c->name, name);
	}
	if (stat(path, &st) == 0 && st.st_uid != uid && !capable(CAP_PTRACE))
		return err_new(
			EACCES,
			"process %d (%s) is protected: it is setuid, has capabilities of its own or has made itself "
			"undumpable; tracing it needs CAP_SYS_PTRACE (root)",
			c->pid, c->name);
	if (scope >= 3)
		return err_new(
			EPERM,
			"kernel.yama.ptrace_scope is 3: nothing may be traced until the machine is restarted");
	if (scope == 2 && !capable(CAP_PTRACE))
		return err_new(
			EPERM,
			"kernel.yama.ptrace_scope is 2: tracing needs CAP_SYS_PTRACE (root)");
	if (scope == 1 && !capable(CAP_PTRACE))
		return err_new(
			EPERM,
			"kernel.yama.ptrace_scope is 1: only programs started by descry (-c) may be traced without "
			"CAP_SYS_PTRACE (root), or set it to 0");
	return err_errno(code, "process %d (%s) may not be traced", c->pid, c->name);
}

/* Refuses 32-bit programs, because their ABI differs in everything that control does. */
struct err *control_check_class(struct control *c)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/exe", c->pid, c->alive);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr h;

	if (fd < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (h.e_machine != EM_X86_64 || h.e_ident[EI_CLASS] != ELFCLASS64)
		return err_new(
			ENOEXEC,
			"process %d (%s) is a 32-bit program: only 64-bit ones can be traced in-process",
			c->pid, c->name);
	return NULL;
}

/* Returns true for a kernel thread. Before Linux 6.12 the only evidence is that kthreadd, process
 * 2, is its parent. */
static bool is_kernel_thread(const char *status)
{
	enum { KTHREADD = 2 };
	long is = procstatus_number(status, "Kthread", 0);

	if (is >= 0)
		return is;
	return procstatus_number(status, "VmSize", 0) < 0 &&
	       (procstatus_number(status, "PPid", 0) == KTHREADD ||
		procstatus_number(status, "Pid", 0) == KTHREADD);
}

struct err *control_check_status(struct control *c, const char *status)
{
	long tracer = procstatus_number(status, "TracerPid", 0);
	const char *features = strstr(status, "\nx86_Thread_features:");
	size_t end = features ? strcspn(features + 1, "\n") + 1 : 0;

	if (is_kernel_thread(status))
		return err_new(EINVAL, "process %d (%s) is a kernel thread", c->pid, c->name);
	if (procstatus_number(status, "VmSize", 0) < 0) /* it will be a zombie soon */
		return control_gone(c);
	if (tracer > 0) {
		cleanup_free char *who = control_comm((pid_t)tracer);

		return err_new(
			EBUSY,
			"process %d (%s) is being traced by process %ld (%s): a process has one tracer at a time",
			c->pid, c->name, tracer, who);
	}
	if (features && memmem(features, end, "shstk", 5))
		return err_new(
			ENOTSUP,
			"process %d (%s) runs with a shadow stack (SHSTK), which in-process tracing does not support",
			c->pid, c->name);
	return NULL;
}

/* --- seccomp(2) --- */

bool control_filtered(pid_t pid, pid_t tid)
{
	cleanup_free char *status = control_task_file(pid, tid, "status"), *own = NULL;
	long mode = status ? procstatus_number(status, "Seccomp", 0) : 0;
	struct err *e;
	bool same;

	if (mode != 2)
		return mode == 1;
	e = control_read_status(getpid(), &own);
	same = !e && procstatus_number(own, "Seccomp_filters", 0) ==
			     procstatus_number(status, "Seccomp_filters", 0);
	err_free(e);
	return !same;
}

bool control_any_filtered(pid_t pid)
{
	cleanup_dir DIR *d = procdir_threads(pid);
	bool any = false;

	for (pid_t tid; !any && procdir_next(d, &tid);)
		any = control_filtered(pid, tid);
	return any;
}

struct err *control_check_calls(pid_t pid)
{
	cleanup_free char *own = NULL, *name = NULL;
	cleanup_dir DIR *d = procdir_threads(pid);
	bool any = false, free_one = false, suspends;
	struct err *e;

	for (pid_t tid; !free_one && procdir_next(d, &tid);)
		if (control_filtered(pid, tid))
			any = true;
		else
			free_one = true;
	if (!any || free_one)
		return NULL;
	e = control_read_status(getpid(), &own);
	suspends = !e && procstatus_number(own, "Seccomp", 0) == 0 && capable(CAP_ADMIN);
	err_free(e);
	name = control_comm(pid);
	return suspends ? NULL : control_filter_refuses(pid, name);
}

struct err *control_filter_refuses(pid_t pid, const char *name)
{
	return err_new(
		EPERM,
		"process %d (%s) filters its system calls (seccomp): mapping memory in it could kill it; "
		"suspending the filter needs CAP_SYS_ADMIN (root), and no filter on descry itself",
		pid, name);
}
