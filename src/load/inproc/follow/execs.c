/* Follows traced processes into the programs that they execute, from the first instruction.
 *
 * execve(2) removes all of descry's mappings. So the C library's execve() has a bell
 * (patch/bell.c): a thread that reaches it waits until the tracer follows it by ptrace(2). The
 * tracer holds the new program at the time when its libraries are mapped and none of its code has
 * run. Children of vfork(2) and posix_spawn(3) reach execve() in their parent's memory, and are
 * followed with `-x follow`. processes_look() finds the programs that this file misses a moment
 * later (a call made in another way, a slow tracer).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "base/procstatus.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/memory/owner.h"
#include "load/inproc/patch/bell.h"
#include "load/inproc/state/process_state.h"

enum {
	CALL_MS = 200,      /* time limit of a call of execve(2) */
	CALL_MAX_MS = 1000, /* the same when the call is visibly under way on a busy machine */
	/* time limit of the program's dynamic linker, from one system call to the next */
	START_MS = 500,
	STAY_NS = 5000000,
};

/* --- the thread that rings --- */

/* Returns true when thread tid has the number `own` in its own pid namespace, and has the shared
 * memory mapped. A number in shared memory is used only for such a thread. The list of mappings of
 * a traced process, which it can make long, is not read for each of its requests. */
static bool is_asker(const struct inproc_engine *e, pid_t tid, pid_t own)
{
	pid_t pid;

	if (procstatus_of(tid, "NSpid", PROCSTATUS_LAST) != (uint32_t)own)
		return false;
	pid = (pid_t)procstatus_of(tid, "Tgid", 0);
	return (process_is_attached(e, pid) && process_holds(e, tid)) || process_has_area(e, pid);
}

static pid_t find_among(const struct inproc_engine *e, DIR *folder, pid_t own)
{
	cleanup_dir DIR *d = folder;

	for (pid_t tid; procdir_next(d, &tid);)
		if (is_asker(e, tid, own))
			return tid;
	return 0;
}

/* Returns the thread's number in this namespace, 0: it is not found. */
static pid_t find_thread(struct inproc_engine *e, pid_t own)
{
	pid_t found = is_asker(e, own, own) ? own : 0;

	for (uint32_t i = 0; i < e->processes.n && !found; i++) {
		const struct inproc_process *p = &e->processes.v[i];
		if (p->attached && e->list[p->index].own_pid != (uint32_t)p->pid)
			found = find_among(e, procdir_threads(p->pid), own);
	}
	if (found || !e->family.searches)
		return found;
	e->family.searches--;
	return find_among(e, opendir("/proc"), own); /* a child in another pid namespace */
}

/* --- the executed program --- */

/* Returns true for a program without privileges of its own. A program with privileges does not get
 * them while an ordinary user's tracer follows it (execve(2)). So such programs, and files that
 * cannot be examined, are not followed. */
static bool gives_nothing(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !(st.st_mode & (S_ISUID | S_ISGID)) &&
	       fgetxattr(fd, "security.capability", NULL, 0) < 0;
}

static int open_as(pid_t tid, const char *path)
{
	cleanup_free char *at =
		xasprintf("/proc/%d/%s%s", (int)tid, path[0] == '/' ? "root" : "cwd/", path);
	cleanup_close int fd = open(at, O_PATH | O_CLOEXEC);
	cleanup_free char *again = xasprintf("/proc/self/fd/%d", fd);
	struct stat st;

	/* opening another kind of file may have an effect, or wait */
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	return open(again, O_RDONLY | O_CLOEXEC);
}

/* Checks the file itself, and the interpreter in its first line. */
static bool is_plain(pid_t tid, const char *path, int depth)
{
	cleanup_close int fd = open_as(tid, path);
	char head[PATH_MAX + 4] = "", *name;
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

	if (n < SELFMAG || !gives_nothing(fd))
		return false;
	if (head[0] != '#' || head[1] != '!')
		return !memcmp(head, ELFMAG, SELFMAG);
	name = head + 2 + strspn(head + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	return depth < 4 && is_plain(tid, name, depth + 1);
}

static bool has_all_privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &head, data) && data[0].effective & 1u << CAP_SYS_PTRACE;
}

static bool may_follow(pid_t tid, uint64_t path)
{
	char text[PATH_MAX] = "";
	size_t n = 0;

	if (has_all_privileges())
		return true;
	while (n < sizeof(text) - 1) {
		/* page by page, because the next page need not be readable */
		size_t room = 4096 - (path + n) % 4096, left = sizeof(text) - 1 - n;
		ssize_t got = procmem_read(tid, text + n, room < left ? room : left, path + n);

		if (got <= 0)
			return false;
		if (memchr(text + n, '\0', (size_t)got))
			return is_plain(tid, text, 0);
		n += (size_t)got;
	}
	return false;
}

static void say_privileged(struct inproc_engine *e, pid_t pid)
{
	inproc_blind(
		e,
		"process %d executes a file that gives it rights which descry lacks (set-user-ID, "
		"capabilities), or that descry cannot read: it is not followed",
		(int)pid);
}

/* A followed thread has failed to execute one file and tries another, as execvp(3) does in one
 * folder after the other. */
static void again(struct inproc_engine *e, uint32_t i, uint64_t path)
{
	struct inproc_exec *x = &e->family.execs.v[i];

	if (may_follow(x->tid, path)) {
		x->until = now_ns() + (uint64_t)CALL_MS * 1000000;
		return;
	}
	say_privileged(e, x->pid);
	control_exec_leave(x->tid, x->pid);
	*x = e->family.execs.v[--e->family.execs.n];
}

/* Handles a thread that is not found any more. It may be a child of vfork(2) that has executed a
 * program without waiting. Its parent's number and its own number in /proc decide, not shared
 * memory. */
static void asked_late(struct inproc_engine *e, pid_t pid)
{
	const struct owner u = owner_of(pid);

	if (e->area->follow && !u.ended && owner_is_like(&e->trust.user, &u) &&
	    procstatus_of(pid, "Tgid", 0) == (uint32_t)pid &&
	    procstatus_of(pid, "NSpid", PROCSTATUS_LAST) == (uint32_t)pid &&
	    process_is_attached(e, (pid_t)procstatus_of(pid, "PPid", 0)))
		process_slow(e, pid);
}

void execs_asked(struct inproc_engine *e, pid_t own_tid, uint64_t path)
{
	struct inproc_exec x = { 0 };
	struct err *err;

	(void)processes_adopt(e); /* adds a child that has just begun */
	x.tid = find_thread(e, own_tid);
	if (!x.tid)
		asked_late(e, own_tid);
	x.pid = x.tid ? (pid_t)procstatus_of(x.tid, "Tgid", 0) : 0;
	for (uint32_t i = 0; i < e->family.execs.n; i++)
		if (e->family.execs.v[i].tid == x.tid) {
			again(e, i, path);
			return;
		}
	if (!x.pid || (!e->area->follow && !process_is_attached(e, x.pid)))
		return;
	if (!may_follow(x.tid, path)) {
		say_privileged(e, x.pid);
		return;
	}
	err = control_exec_watch(x.tid, x.pid);
	x.until = now_ns() + (uint64_t)CALL_MS * 1000000;
	if (!err)
		vec_push(&e->family.execs, x);
	err_free(err);
}

/* --- following --- */

bool execs_pending(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->family.execs.n; i++)
		if (e->family.execs.v[i].pid == pid)
			return true;
	return false;
}

static void executed(struct inproc_engine *e, pid_t pid)
{
	struct control *c = NULL;
	struct err *err = control_exec_hold(pid, START_MS, e->named.executed != NULL, &c);

	if (!err)
		process_executed(e, pid, c);
	else if (err->code == ETIMEDOUT)
		process_slow(e, pid);
	else if (err->code != ESRCH && !process_is_attached(e, pid))
		inproc_blind(e, "%s: it is not followed", err->text);
	err_free(err);
}

/* Returns true while the tracer should wait for the thread. */
static bool has_time(const struct inproc_exec *x)
{
	const uint64_t now = now_ns(), more = (uint64_t)(CALL_MAX_MS - CALL_MS) * 1000000;

	return now < x->until || (now < x->until + more && control_exec_comes(x->tid));
}

static void execs_look_at(struct inproc_engine *e, uint32_t i)
{
	const struct inproc_exec x = e->family.execs.v[i];
	enum control_exec what = control_exec_look(x.tid, x.pid);

	if (what == CONTROL_EXEC_NOT_YET && has_time(&x))
		return;
	if (what == CONTROL_EXEC_NOT_YET)
		control_exec_leave(x.tid, x.pid);
	e->family.execs.v[i] = e->family.execs.v[--e->family.execs.n];
	if (what != CONTROL_EXEC_DONE)
		return;
	/* drops the process's other threads, which are gone */
	for (uint32_t k = e->family.execs.n; k-- > 0;)
		if (e->family.execs.v[k].pid == x.pid) {
			control_exec_forget(e->family.execs.v[k].tid);
			e->family.execs.v[k] = e->family.execs.v[--e->family.execs.n];
		}
	executed(e, x.pid);
}

void execs_look(struct inproc_engine *e)
{
	uint64_t end = now_ns() + STAY_NS;

	while (e->family.execs.n) {
		for (uint32_t i = e->family.execs.n; i-- > 0;)
			if (i < e->family.execs.n)
				execs_look_at(e, i);
		if (!e->family.execs.n || now_ns() > end || bell_rings(e))
			break;
		nap_ns(20000);
	}
}

void execs_stop(struct inproc_engine *e)
{
	for (uint32_t i = 0; i < e->family.execs.n; i++)
		control_exec_leave(e->family.execs.v[i].tid, e->family.execs.v[i].pid);
	e->family.execs.n = 0;
}
