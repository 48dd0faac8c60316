/* Stopping and resuming: PTRACE_SEIZE and PTRACE_INTERRUPT, until /proc/PID/task holds nothing new. */
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "internal.h"

enum { SPIN_NS = 60000 };

/* Threads seized that did not stop in time. They cannot be detached before they stop. */
static _Thread_local VEC(pid_t) late;

uint64_t control_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

pid_t control_pid(const struct control *c)
{
	return c->pid;
}

struct err *control_gone(const struct control *c)
{
	return err_new(ESRCH, "process %d (%s) has ended", c->pid, c->name);
}

/* --- what /proc says --- */

struct err *control_proc(const struct control *c, const char *file, char **ret_text, size_t *ret_n)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/%s", c->pid, c->alive, file);

	return io_read_file(path, ret_text, ret_n);
}

/* The value behind "KEY:" of a status file, -1 when there is none. */
static long status_number(const char *text, const char *key, int base)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && line[n] == ':')
			return strtol(line + n + 1, NULL, base);
	}
	return -1;
}

/* Of /proc/PID/task/TID/stat: the letter of its state, 0 when it is gone. */
static char thread_state(pid_t pid, pid_t tid)
{
	char path[64], text[512];
	ssize_t n;
	char *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	return p && p[1] == ' ' ? p[2] : 0;
}

/* A file of a thread's folder, NULL when it cannot be read. */
static char *task_file(pid_t pid, pid_t tid, const char *file)
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

static char *comm_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/comm", pid);
	char *text = NULL;
	size_t n;
	struct err *e = io_read_file(path, &text, &n);

	if (e) {
		err_free(e);
		return xstrdup("?");
	}
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* How long a process's tracer is waited for: another descry and its watchdog let go within milliseconds. */
static uint64_t patience(const char *comm)
{
	return strncmp(comm, "descry", 6) ? 50000000 : 2000000000;
}

static struct err *read_status(pid_t pid, char **ret)
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

/* The first thread that is not a zombie; the main one may be, while others run on. */
static pid_t living_thread(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/task", pid);
	DIR *d = opendir(path);
	struct dirent *de;
	pid_t tid, ret = 0;

	while (d && !ret && (de = readdir(d))) {
		char state;

		tid = (pid_t)strtol(de->d_name, NULL, 10);
		state = tid > 0 ? thread_state(pid, tid) : 0;
		if (state && state != 'Z' && state != 'X')
			ret = tid;
	}
	if (d)
		closedir(d);
	return ret;
}

static bool capable(int cap)
{
	cleanup_free char *text = NULL;
	struct err *e = read_status(getpid(), &text);
	long bits = e ? 0 : status_number(text, "CapEff", 16);

	err_free(e);
	return bits >= 0 && (bits >> cap & 1);
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

/* Why may we not ptrace it? */
static struct err *refused(const struct control *c, const char *status, int code)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/mem", c->pid, c->alive);
	uid_t uid = (uid_t)status_number(status, "Uid", 10);
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

/* 32-bit programs have another ABI in everything that is done here. */
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

static struct err *check_status(struct control *c, const char *status)
{
	long tracer = status_number(status, "TracerPid", 10),
	     seccomp = status_number(status, "Seccomp", 10);
	const char *features = strstr(status, "\nx86_Thread_features:");
	size_t end = features ? strcspn(features + 1, "\n") + 1 : 0;

	if (status_number(status, "Kthread", 10) == 1 || status_number(status, "VmSize", 10) < 0)
		return err_new(EINVAL, "process %d (%s) is a kernel thread", c->pid, c->name);
	if (tracer > 0) {
		cleanup_free char *who = comm_of((pid_t)tracer);

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
	if (seccomp == 1)
		return err_new(
			EPERM,
			"process %d (%s) is in strict seccomp mode: no system call can be made in it",
			c->pid, c->name);
	if (seccomp == 2) {
		cleanup_free char *own = NULL;
		struct err *e = read_status(getpid(), &own);
		/* Filters are inherited: as many as ours are ours, and what they permit us they permit it. */
		bool same = !e && status_number(own, "Seccomp_filters", 10) ==
					  status_number(status, "Seccomp_filters", 10);

		err_free(e);
		if (!same)
			c->options |= PTRACE_O_SUSPEND_SECCOMP;
		if (!same && !capable(CAP_ADMIN))
			return err_new(
				EPERM,
				"process %d (%s) filters its system calls (seccomp): mapping memory in it could kill it; "
				"suspending the filter needs CAP_SYS_ADMIN (root)",
				c->pid, c->name);
	}
	return NULL;
}

/* --- open --- */

struct err *control_open_mem(struct control *c)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/mem", c->pid, c->alive);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "cannot open the memory of process %d (%s)", c->pid,
				 c->name);
	if (c->mem >= 0)
		close(c->mem);
	c->mem = fd;
	return NULL;
}

struct err *control_new(pid_t pid, struct control **ret)
{
	struct control *c = xcalloc(1, sizeof(*c));

	c->pid = pid;
	c->mem = -1;
	c->options = PTRACE_O_TRACESYSGOOD;
	c->alive = living_thread(pid);
	c->name = comm_of(pid);
	*ret = c;
	return c->alive ? NULL : err_new(ESRCH, "there is no process %d", pid);
}

/* The status, once another tracer has let go of the process, if it soon does. */
static struct err *read_free_status(struct control *c, char **ret)
{
	uint64_t begun = control_now();

	for (;;) {
		char *status = NULL;
		struct err *e = read_status(c->alive, &status);
		long tracer = e ? 0 : status_number(status, "TracerPid", 10);
		cleanup_free char *who = tracer > 0 ? comm_of((pid_t)tracer) : NULL;

		if (e || !who || control_now() - begun > patience(who)) {
			*ret = status;
			return e;
		}
		free(status);
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
}

struct err *control_open(pid_t pid, struct control **ret)
{
	cleanup_free char *status = NULL;
	struct control *c;
	struct err *e, *m;

	if (pid <= 0)
		return err_new(EINVAL, "%d is no process", pid);
	if (pid == getpid())
		return err_new(EINVAL, "descry cannot control itself");
	e = control_new(pid, &c);
	if (!e)
		e = read_free_status(c, &status);
	if (!e && status_number(status, "Tgid", 10) != pid)
		e = err_new(EINVAL, "%d is a thread of process %ld, not a process", pid,
			    status_number(status, "Tgid", 10));
	if (!e)
		e = check_status(c, status);
	if (!e) {
		m = control_open_mem(c);
		if (m && (m->code == EACCES || m->code == EPERM))
			e = refused(c, status, m->code);
		else if (m)
			e = err_wrap(m, "tracing");
		if (e != m)
			err_free(m);
	}
	if (!e)
		e = control_check_class(c);
	if (e) {
		control_free(c);
		return e;
	}
	*ret = c;
	return NULL;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	if (c->stopped || c->threads.n)
		err_free(control_resume(c));
	if (c->mem >= 0)
		close(c->mem);
	vec_fini(&c->threads);
	vec_fini(&c->maps);
	free(c->maps_text);
	free(c->auxv);
	free(c->name);
	free(c);
}

/* --- waiting --- */

/* What a wait does between two looks. A running thread stops within microseconds, so it yields at first; on a busy machine a
 * yield is a whole round of everybody else, while a sleeper is among the next. */
static void wait_a_bit(uint64_t begun)
{
	uint64_t waited = control_now() - begun;

	if (waited < SPIN_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = waited < 20000000 ? 20000 : 500000 },
			  NULL);
}

/* A stop or the end of one thread. */
bool control_wait(pid_t tid, int *ret_status, uint64_t deadline)
{
	uint64_t begun = control_now();

	for (unsigned tries = 0;; tries++) {
		pid_t r = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (r == tid)
			return true;
		if (r < 0 && errno != EINTR) {
			*ret_status = 0; /* gone: an exec took its number, or it was never ours */
			return true;
		}
		if (tries > 20 && control_now() > deadline)
			return false;
		wait_a_bit(begun);
	}
}

static bool is_interrupt_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP;
}

/* From some stop on to one where nothing is on its way: a signal about to be delivered is delivered, which sets up its
 * handler's frame, and the thread stops again in front of the handler's first instruction. False: gone or too late. */
bool control_wait_interrupt(pid_t tid, int status, uint64_t deadline)
{
	for (;;) {
		int sig;

		if (!WIFSTOPPED(status))
			return false;
		if (is_interrupt_stop(status))
			return true;
		sig = status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || ptrace(PTRACE_CONT, tid, 0, sig) < 0)
			return false;
		if (!control_wait(tid, &status, deadline))
			return false;
	}
}

/* --- stop --- */

static struct control_thread *find_thread(struct control *c, pid_t tid, uint32_t hint)
{
	if (hint < c->threads.n && c->threads.v[hint].tid == tid)
		return &c->threads.v[hint];
	for (uint32_t i = 0; i < c->threads.n; i++)
		if (c->threads.v[i].tid == tid)
			return &c->threads.v[i];
	return NULL;
}

static void forget(struct control *c, pid_t tid)
{
	struct control_thread *t = find_thread(c, tid, 0);

	if (t)
		*t = c->threads.v[--c->threads.n];
}

/* Does `tid` wait in vfork() for a child of the same memory? Then it cannot stop, and need not: it runs no instruction
 * before the child is gone from the memory. */
static pid_t vfork_child(struct control *c, pid_t tid, uint64_t *ret_pc, uint64_t *ret_sp)
{
	cleanup_free char *text = task_file(c->pid, tid, "syscall");
	cleanup_free char *children = task_file(c->pid, tid, "children");
	unsigned long long nr, a[6], sp, pc;
	char *p, *end;

	if (!text || sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx %llx", &nr, &a[0], &a[1],
			    &a[2], &a[3], &a[4], &a[5], &sp, &pc) != 9)
		return 0;
	if (nr != SYS_vfork && nr != SYS_clone && nr != SYS_clone3)
		return 0;
	*ret_pc = pc;
	*ret_sp = sp;
	for (p = children; p && *p; p = end) {
		pid_t child = (pid_t)strtol(p, &end, 10);

		if (end == p)
			break;
		if (syscall(SYS_kcmp, tid, child, KCMP_VM, 0, 0) == 0)
			return child;
	}
	return 0;
}

/* System calls that fail with EINTR after any stop, even when no handler runs (signal(7)): turned into a restart. The
 * kernel still makes it EINTR when a handler does run. A timeout begins anew. */
static const uint16_t eintr_calls[] = {
	SYS_epoll_wait,
	SYS_epoll_pwait,
	441 /* epoll_pwait2 */,
	SYS_semop,
	SYS_semtimedop,
	SYS_rt_sigtimedwait,
	SYS_io_getevents,
	333 /* io_pgetevents */,
	426 /* io_uring_enter */,
	/* sockets with a timeout */
	SYS_read,
	SYS_readv,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_recvmmsg,
	SYS_accept,
	SYS_accept4,
	SYS_write,
	SYS_writev,
	SYS_sendto,
	SYS_sendmsg,
};
enum { ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

bool control_get_regs(struct control_thread *t)
{
	int64_t rax;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs) < 0)
		return false;
	t->changed = false;
	rax = (int64_t)t->regs.rax;
	if ((int64_t)t->regs.orig_rax >= 0 && rax == -EINTR)
		for (size_t i = 0; i < ARRAY_SIZE(eintr_calls); i++)
			if (t->regs.orig_rax == eintr_calls[i]) {
				t->regs.rax = (uint64_t)(rax = -ERESTARTNOHAND);
				t->changed = true;
			}
	t->in_syscall = (int64_t)t->regs.orig_rax >= 0 &&
			(rax == -ERESTARTSYS || rax == -ERESTARTNOINTR || rax == -ERESTARTNOHAND ||
			 rax == -ERESTART_RESTARTBLOCK);
	return !t->changed || ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) == 0;
}

static bool seize(struct control *c, pid_t tid, bool guest)
{
	struct control_thread *t;

	if (ptrace(PTRACE_SEIZE, tid, 0, c->options) < 0)
		return false;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	t = vec_add(&c->threads);
	t->tid = tid;
	t->guest = guest;
	t->seized = t->pending = true;
	return true;
}

/* A thread that waits for its vfork child. The child is stopped in its place; false when it was gone too soon. */
static bool add_blocked(struct control *c, pid_t tid, pid_t child, uint64_t pc, uint64_t sp)
{
	struct control_thread *t;

	if (!seize(c, child, true))
		return false;
	t = vec_add(&c->threads);
	t->tid = tid;
	t->blocked = true;
	t->regs.rip = pc;
	t->regs.rsp = sp;
	t->regs.orig_rax = (uint64_t)-1;
	return true;
}

/* Why could this living thread not be seized? NULL: it is about to end. EAGAIN: another tracer has it, or has just let go. */
static struct err *not_seized(struct control *c, pid_t tid, int code)
{
	cleanup_free char *status = task_file(c->pid, tid, "status");
	char state = thread_state(c->pid, tid);
	long tracer = status ? status_number(status, "TracerPid", 10) : 0;

	if (!status || !state || state == 'Z' || state == 'X' || code == ESRCH)
		return NULL;
	if (tracer > 0) {
		cleanup_free char *who = comm_of((pid_t)tracer);

		if (control_now() - c->stop_begun < patience(who))
			code = EAGAIN;
		return err_new(code == EAGAIN ? EAGAIN : EBUSY,
			       "thread %d of process %d (%s) is being traced by process %ld (%s)",
			       tid, c->pid, c->name, tracer, who);
	}
	if (code == EPERM && control_now() - c->stop_begun < patience(""))
		return err_new(EAGAIN, "thread %d", tid);
	if (c->options & PTRACE_O_SUSPEND_SECCOMP)
		return err_errno(
			code,
			"process %d (%s) filters its system calls (seccomp), and the filter cannot be suspended",
			c->pid, c->name);
	return err_errno(code, "cannot stop thread %d of process %d (%s)", tid, c->pid, c->name);
}

/* Seizes the threads that are new; *ret_more: there were some. */
static struct err *seize_new(struct control *c, bool *ret_more)
{
	cleanup_free char *path = xasprintf("/proc/%d/task", c->pid);
	DIR *d = opendir(path);
	struct dirent *de;
	struct err *e = NULL;
	uint32_t i = 0;

	if (!d)
		return control_gone(c);
	while (!e && (de = readdir(d))) {
		pid_t tid = (pid_t)strtol(de->d_name, NULL, 10), child;
		uint64_t pc, sp;
		char state;

		if (tid <= 0 || find_thread(c, tid, i++))
			continue;
		state = thread_state(c->pid, tid);
		if (!state || state == 'Z' || state == 'X')
			continue;
		*ret_more = true;
		if (state == 'D' && (child = vfork_child(c, tid, &pc, &sp))) {
			add_blocked(c, tid, child, pc, sp);
			continue;
		}
		if (!seize(c, tid, false))
			e = not_seized(c, tid, errno);
	}
	closedir(d);
	return e;
}

/* Thread i got past its stop and into vfork() before it was seized: its child stops in its place. */
static bool turn_blocked(struct control *c, uint32_t i)
{
	uint64_t pc, sp;
	pid_t child = c->threads.v[i].guest ? 0 : vfork_child(c, c->threads.v[i].tid, &pc, &sp);
	struct control_thread *t;

	if (!child || find_thread(c, child, 0) || !seize(c, child, true))
		return false;
	t = &c->threads.v[i];
	t->blocked = true;
	t->pending = false;
	t->regs.rip = pc;
	t->regs.rsp = sp;
	t->regs.orig_rax = (uint64_t)-1;
	return true;
}

/* Thread i has reported `status`; when it has ended it is forgotten. */
static void stopped_thread(struct control *c, uint32_t i, int status, uint64_t deadline)
{
	pid_t tid = c->threads.v[i].tid;

	if (control_wait_interrupt(tid, status, deadline)) {
		c->threads.v[i].pending = false;
		if (control_get_regs(&c->threads.v[i]))
			return;
	} else if (c->threads.v[i].guest) {
		/* its parent runs on: to be seen as new */
		for (uint32_t k = c->threads.n; k-- > 0;)
			if (c->threads.v[k].blocked && !c->threads.v[k].seized)
				forget(c, c->threads.v[k].tid);
	}
	forget(c, tid);
}

/* Waits until all that were seized have stopped, and looks at each as soon as it has: a call that a stop makes fail is to be
 * set right at once. */
static struct err *wait_threads(struct control *c, uint64_t deadline)
{
	uint64_t begun = control_now(), idle = begun;

	for (;;) {
		uint32_t pending = 0;
		pid_t tid = 0;

		for (uint32_t i = c->threads.n; i-- > 0;) {
			int status = 0;
			pid_t r;

			if (i >= c->threads.n || !c->threads.v[i].pending)
				continue;
			r = waitpid(c->threads.v[i].tid, &status, __WALL | WNOHANG);
			if (r == 0) {
				tid = c->threads.v[i].tid;
				pending++;
				if (control_now() - begun > 2000000 && turn_blocked(c, i))
					begun = control_now();
				continue;
			}
			stopped_thread(c, i, r < 0 ? 0 : status, deadline);
			idle = control_now();
		}
		if (!pending)
			return NULL;
		if (control_now() > deadline)
			return err_new(
				ETIMEDOUT,
				"thread %d of process %d (%s) does not stop: it is in state %c",
				tid, c->pid, c->name, thread_state(c->pid, tid) ?: '?');
		wait_a_bit(idle);
	}
}

struct err *control_stop_more(struct control *c, int timeout_ms)
{
	uint64_t deadline = control_now() + (uint64_t)timeout_ms * 1000000;
	struct err *e = NULL;
	bool more = true;

	while (!e && more) {
		more = false;
		e = seize_new(c, &more);
		e = e ?: wait_threads(c, deadline);
		if (!e && more && control_now() > deadline)
			e = err_new(
				ETIMEDOUT,
				"process %d (%s) starts threads faster than they can be stopped",
				c->pid, c->name);
	}
	if (!e && !c->threads.n)
		e = control_gone(c);
	for (uint32_t i = 0; !e && i < c->threads.n; i++)
		if (!c->threads.v[i].blocked)
			control_cancel_call(c, &c->threads.v[i]);
	return e ?: control_put_regs(c);
}

/* Two tracers that come at once must not each hold a part of the threads: who meets another's lets go of all and tries
 * again. The main thread is seized first, so that one of them wins. */
struct err *control_stop(struct control *c, int timeout_ms)
{
	struct err *e = NULL;

	assert(!c->stopped);
	c->stop_begun = control_now();
	do {
		err_free(e);
		c->alive = living_thread(c->pid);
		e = c->alive ? control_open_mem(c) : control_gone(c);
		if (e)
			return e;
		free(c->auxv);
		c->auxv = NULL;
		c->stopped = true;
		e = control_stop_more(c, timeout_ms);
		if (e)
			err_free(control_resume(c));
		if (e && e->code == EAGAIN)
			nanosleep(&(struct timespec){ .tv_nsec = 300000 + control_now() % 700000 },
				  NULL);
	} while (e && e->code == EAGAIN);
	return e;
}

static bool any_can_call(const struct control *c)
{
	for (uint32_t i = 0; i < c->threads.n; i++)
		if (!c->threads.v[i].blocked && !c->threads.v[i].guest)
			return true;
	return false;
}

struct err *control_stop_to_call(struct control *c, int timeout_ms)
{
	uint64_t end = control_now() + (uint64_t)timeout_ms * 1000000;

	for (;;) {
		struct err *e = control_stop(c, timeout_ms);

		if (e || any_can_call(c))
			return e;
		e = control_resume(c);
		if (e)
			return e;
		if (control_now() > end)
			return err_new(
				EBUSY,
				"process %d (%s) waits for a child of vfork() that goes on: try again later",
				c->pid, c->name);
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
}

struct control_thread *control_threads(struct control *c, uint32_t *ret_n)
{
	*ret_n = c->threads.n;
	return c->threads.v;
}

/* --- resume --- */

struct err *control_put_regs(struct control *c)
{
	for (uint32_t i = 0; i < c->threads.n; i++) {
		struct control_thread *t = &c->threads.v[i];

		if (!t->changed)
			continue;
		if (t->blocked || t->pending)
			return err_new(EBUSY, "thread %d of process %d (%s) waits in vfork()",
				       t->tid, c->pid, c->name);
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0 && errno != ESRCH)
			return err_errno(errno, "writing registers of thread %d", t->tid);
		t->changed = false;
	}
	return NULL;
}

/* A thread that may not have stopped yet: true when it is let go. */
static bool let_go(pid_t tid)
{
	int status;
	pid_t r = waitpid(tid, &status, __WALL | WNOHANG);
	int sig = 0;

	if (r == 0)
		return false;
	if (r < 0 || !WIFSTOPPED(status))
		return true;
	if (status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80))
		sig = WSTOPSIG(status);
	ptrace(PTRACE_DETACH, tid, 0, sig);
	return true;
}

bool control_settle(void)
{
	for (uint32_t i = late.n; i-- > 0;)
		if (let_go(late.v[i]))
			late.v[i] = late.v[--late.n];
	if (!late.n)
		vec_fini(&late);
	return !late.n;
}

struct err *control_resume(struct control *c)
{
	struct err *e = NULL;
	int status;

	if (!c->stopped)
		return NULL;
	control_unstub(c);
	e = control_put_regs(c);
	for (uint32_t i = 0; i < c->threads.n; i++) {
		struct control_thread *t = &c->threads.v[i];

		if (!t->seized)
			continue;
		if (t->pending || t->blocked)
			vec_push(&late, t->tid);
		else if (ptrace(PTRACE_DETACH, t->tid, 0, 0) < 0)
			control_wait(t->tid, &status, control_now() + 100000000);
	}
	c->threads.n = 0;
	c->stopped = false;
	for (int i = 0; !control_settle() && i < 20; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	return e;
}

/* --- one thread --- */

/* The kernel aborts a restartable sequence when its thread is interrupted there; at another address it would not. */
static bool in_sequence(pid_t pid, pid_t tid)
{
	enum { GET_RSEQ_CONFIGURATION = 0x420f, CS = 8 /* struct rseq.rseq_cs */ };
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} conf = { 0 };
	uint64_t cs = 0;
	struct iovec to = { &cs, sizeof(cs) }, from;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof(conf), &conf) <= 0 ||
	    !conf.area)
		return false;
	from = (struct iovec){ (void *)(conf.area + CS), sizeof(cs) };
	return process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(cs) || cs;
}

bool control_glance(pid_t pid, pid_t tid, int timeout_ms,
		    bool (*fn)(void *arg, struct user_regs_struct *regs), void *arg)
{
	uint64_t deadline = control_now() + (uint64_t)timeout_ms * 1000000;
	struct control_thread t = { .tid = tid };
	bool changed = false;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		return false;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (!control_wait(tid, &status, deadline) ||
	    (WIFSTOPPED(status) && !control_wait_interrupt(tid, status, deadline))) {
		/* not stopped: ESRCH */
		if (ptrace(PTRACE_DETACH, tid, 0, 0) < 0 && thread_state(pid, tid))
			vec_push(&late, tid);
		return false;
	}
	if (!WIFSTOPPED(status))
		return false; /* it has ended */
	if (control_get_regs(&t) && (int64_t)t.regs.orig_rax < 0 && !in_sequence(pid, tid) &&
	    fn(arg, &t.regs))
		changed = ptrace(PTRACE_SETREGS, tid, 0, &t.regs) == 0;
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return changed;
}

/* --- memory --- */

struct err *control_read(struct control *c, uint64_t addr, void *buf, uint32_t n)
{
	ssize_t r = pread(c->mem, buf, n, (off_t)addr);

	if (r == (ssize_t)n)
		return NULL;
	return err_new(r < 0 ? errno : EFAULT, "process %d (%s): cannot read %u bytes at 0x%llx",
		       c->pid, c->name, n, (unsigned long long)addr);
}

struct err *control_write(struct control *c, uint64_t addr, const void *buf, uint32_t n)
{
	ssize_t r = pwrite(c->mem, buf, n, (off_t)addr);

	if (r == (ssize_t)n)
		return NULL;
	return err_new(r < 0 ? errno : EFAULT, "process %d (%s): cannot write %u bytes at 0x%llx",
		       c->pid, c->name, n, (unsigned long long)addr);
}

struct err *control_maps(struct control *c, const struct control_map **ret, uint32_t *ret_n)
{
	char *text = NULL, *line, *next;
	struct err *e;
	size_t n;

	if (!c->stopped)
		c->alive = living_thread(c->pid);
	e = control_proc(c, "maps", &text, &n);
	if (e)
		return e;
	free(c->maps_text);
	c->maps_text = text;
	c->maps.n = 0;
	for (line = text; *line; line = next) {
		unsigned long long lo, hi, offset, inode;
		struct control_map m = { .name = "" };
		int at = 0;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &lo, &hi, m.prot, &offset,
			   &inode, &at) < 5)
			continue;
		m.lo = lo;
		m.hi = hi;
		m.offset = offset;
		m.inode = inode;
		if (at)
			m.name = line + at;
		vec_push(&c->maps, m);
	}
	*ret = c->maps.v;
	*ret_n = c->maps.n;
	return NULL;
}

uint64_t control_auxv(struct control *c, uint64_t type)
{
	if (!c->auxv) {
		char *text = NULL;
		size_t n = 0;

		err_free(control_proc(c, "auxv", &text, &n));
		c->auxv = (uint64_t *)(void *)text;
		c->nauxv = (uint32_t)(n / 16);
	}
	for (uint32_t i = 0; c->auxv && i < c->nauxv; i++)
		if (c->auxv[2 * i] == type)
			return c->auxv[2 * i + 1];
	return 0;
}
