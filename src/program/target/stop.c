/* Stops and resumes processes: seizes and interrupts threads until /proc/PID/task lists no new
 * ones. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "target_private.h"

/* A process may have tens of thousands of threads, and waits while they are looked for. */
static struct control_thread *find_thread(struct control *c, pid_t tid)
{
	const uint64_t *at = hash_get(&c->by_tid, &tid, sizeof(tid));
	struct control_thread *t = at && *at <= c->threads.n ? &c->threads.v[*at - 1] : NULL;

	return t && t->tid == tid ? t : NULL;
}

struct control_thread *control_add_thread(struct control *c, pid_t tid)
{
	struct control_thread *t;

	if (!c->threads.n) {
		hash_fini(&c->by_tid);
		c->any_blocked = false;
	}
	t = vec_add(&c->threads);
	t->tid = tid;
	*hash_put(&c->by_tid, &tid, sizeof(tid), NULL) = c->threads.n;
	return t;
}

static void stop_forget(struct control *c, pid_t tid)
{
	struct control_thread *t = find_thread(c, tid);

	if (!t)
		return;
	hash_del(&c->by_tid, &tid, sizeof(tid));
	*t = c->threads.v[--c->threads.n];
	if (t->tid != tid)
		*hash_put(&c->by_tid, &t->tid, sizeof(t->tid), NULL) =
			(uint64_t)(t - c->threads.v) + 1;
}

pid_t control_vfork_child(pid_t pid, pid_t tid, uint64_t *ret_pc, uint64_t *ret_sp)
{
	cleanup_free char *text = control_task_file(pid, tid, "syscall");
	cleanup_free char *children = control_task_file(pid, tid, "children");
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

/* System calls that fail with EINTR after any stop, even when no handler runs (signal(7)). They are
 * turned into a restart. The kernel still returns EINTR when a handler does run. A timeout begins
 * anew. */
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

	if (!control_seize(c, tid, c->options))
		return false;
	t = control_add_thread(c, tid);
	t->guest = guest;
	t->seized = t->pending = true;
	return true;
}

/* Adds a thread that waits for its vfork child, and seizes the child in its place. Returns false
 * when the child had ended. */
static bool add_blocked(struct control *c, pid_t tid, pid_t child, uint64_t pc, uint64_t sp)
{
	struct control_thread *t;

	if (!seize(c, child, true))
		return false;
	t = control_add_thread(c, tid);
	t->blocked = c->any_blocked = true;
	t->child = child;
	t->regs.rip = pc;
	t->regs.rsp = sp;
	t->regs.orig_rax = (uint64_t)-1;
	return true;
}

/* Returns the reason why a living thread could not be seized, or NULL when it is about to end.
 * EAGAIN: another tracer has it, or has just detached. */
static struct err *not_seized(struct control *c, pid_t tid, int code)
{
	cleanup_free char *status = control_task_file(c->pid, tid, "status");
	char state = control_thread_state(c->pid, tid);
	long tracer = status ? procstatus_number(status, "TracerPid", 0) : 0;

	if (!status || !state || state == 'Z' || state == 'X' || code == ESRCH)
		return NULL;
	if (tracer == getpid()) /* it could not be let go: seize.c */
		return err_new(
			EBUSY,
			"thread %d of process %d (%s) is stopped by a signal, and another one is on its way: try again when it goes on",
			tid, c->pid, c->name);
	if (tracer > 0) {
		cleanup_free char *who = control_comm((pid_t)tracer);

		if (now_ns() - c->stop_begun < control_patience(who))
			code = EAGAIN;
		return err_new(code == EAGAIN ? EAGAIN : EBUSY,
			       "thread %d of process %d (%s) is being traced by process %ld (%s)",
			       tid, c->pid, c->name, tracer, who);
	}
	/* control_open() found that it may be traced, so another tracer had it a moment ago. */
	if (code == EPERM && now_ns() - c->stop_begun < control_patience("descry"))
		return err_new(EAGAIN, "thread %d", tid);
	return err_errno(code, "cannot stop thread %d of process %d (%s)", tid, c->pid, c->name);
}

/* Seizes the new threads. Sets *ret_more when there were any. */
static struct err *seize_new(struct control *c, bool *ret_more)
{
	cleanup_dir DIR *d = procdir_threads(c->pid);
	struct err *e = NULL;

	if (!d)
		return control_gone(c);
	for (pid_t tid; !e && procdir_next(d, &tid);) {
		pid_t child;
		uint64_t pc, sp;
		char state;

		if (find_thread(c, tid))
			continue;
		state = control_thread_state(c->pid, tid);
		if (!state || state == 'Z' || state == 'X')
			continue;
		*ret_more = true;
		if (state == 'D' && (child = control_vfork_child(c->pid, tid, &pc, &sp))) {
			add_blocked(c, tid, child, pc, sp);
			continue;
		}
		if (!seize(c, tid, false))
			e = not_seized(c, tid, errno);
	}
	return e;
}

/* Thread i passed its stop and entered vfork() before it was seized. Stops its child in its
 * place. */
static bool turn_blocked(struct control *c, uint32_t i)
{
	uint64_t pc, sp;
	pid_t child = c->threads.v[i].guest
			      ? 0
			      : control_vfork_child(c->pid, c->threads.v[i].tid, &pc, &sp);
	struct control_thread *t;

	if (!child || find_thread(c, child) || !seize(c, child, true))
		return false;
	t = &c->threads.v[i];
	t->blocked = c->any_blocked = true;
	t->child = child;
	t->pending = false;
	t->regs.rip = pc;
	t->regs.rsp = sp;
	t->regs.orig_rax = (uint64_t)-1;
	return true;
}

/* Forgets a guest, and the thread that waited for it. This thread runs on, and is seized as new; if
 * it is seized already, it stops before it runs an instruction. */
static void forget_guest(struct control *c, pid_t guest)
{
	stop_forget(c, guest);
	for (uint32_t i = c->any_blocked ? c->threads.n : 0; i-- > 0;) {
		struct control_thread *t = &c->threads.v[i];

		if (!t->blocked || t->child != guest)
			continue;
		if (!t->seized) {
			stop_forget(c, t->tid);
			continue;
		}
		t->blocked = false;
		t->child = 0;
		t->pending = true;
	}
}

/* Forgets a thread that did not stop in time, or that executed a program and now has its process's
 * number. This number is no other thread's here. control_settle() detaches it later. */
static void forget_living(struct control *c, pid_t tid, pid_t pid)
{
	forget_guest(c, tid);
	if (control_is_ours(tid) || (!find_thread(c, pid) && control_is_ours(pid)))
		control_let_go_later(tid, pid);
}

/* Handles `status` of thread i. Forgets the thread when it has ended. */
static void stopped_thread(struct control *c, uint32_t i, int status, uint64_t deadline)
{
	const pid_t tid = c->threads.v[i].tid, pid = c->threads.v[i].guest ? tid : c->pid;

	if (control_wait_interrupt(tid, status, deadline)) {
		c->threads.v[i].pending = false;
		if (control_get_regs(&c->threads.v[i]))
			return;
	}
	forget_living(c, tid, pid);
}

/* Returns the CPU time of a thread in ns, 0 when the kernel does not report it. */
static uint64_t run_time(pid_t pid, pid_t tid)
{
	cleanup_free char *text = control_task_file(pid, tid, "schedstat");
	unsigned long long ns = 0;

	return text && sscanf(text, "%llu", &ns) == 1 ? ns : 0;
}

/* A thread without a CPU cannot stop, for seconds on a busy machine. A thread that gets CPU time
 * and does not stop is busy inside the kernel. */
struct late {
	pid_t tid; /* the thread that was late at the last poll */
	uint64_t ran;
};

static bool is_starved(const struct control *c, pid_t tid, uint64_t deadline, uint64_t timeout,
		       struct late *late)
{
	enum { LONGEST = 5 /* timeouts */, SHARE = 4 /* of a timeout: it ran this long */ };
	uint64_t ran = run_time(c->pid, tid);

	if (!ran || control_thread_state(c->pid, tid) != 'R' ||
	    now_ns() > deadline + LONGEST * timeout)
		return false;
	if (late->tid != tid)
		*late = (struct late){ tid, ran };
	return ran - late->ran < timeout / SHARE;
}

/* Waits until all seized threads have stopped. Handles each thread as soon as it stops, because a
 * call that the stop made fail must be repaired at once. */
static struct err *wait_threads(struct control *c, uint64_t deadline, uint64_t timeout)
{
	uint64_t begun = now_ns(), idle = begun;
	struct late late = { 0 };

	for (;;) {
		uint32_t pending = 0;
		pid_t tid = 0;

		for (uint32_t i = c->threads.n; i-- > 0;) {
			int status = 0;
			pid_t r;

			if (i >= c->threads.n || !c->threads.v[i].pending)
				continue;
			r = control_waitpid(c->threads.v[i].tid, &status);
			if (r == 0) {
				tid = c->threads.v[i].tid;
				pending++;
				if (now_ns() - begun > 2000000 && turn_blocked(c, i))
					begun = now_ns();
				continue;
			}
			stopped_thread(c, i, r < 0 ? 0 : status, deadline);
			idle = now_ns();
		}
		if (!pending)
			return NULL;
		if (now_ns() > deadline && !is_starved(c, tid, deadline, timeout, &late))
			return err_new(
				ETIMEDOUT,
				"thread %d of process %d (%s) does not stop: it is in state %c",
				tid, c->pid, c->name, control_thread_state(c->pid, tid) ?: '?');
		control_wait_a_bit(idle);
	}
}

/* --- whose memory the threads are in --- */

/* Returns true when this process holds the thread: it is traced and stopped, and so cannot execute
 * a program. */
static bool is_held(pid_t tid)
{
	errno = 0;
	(void)ptrace(PTRACE_PEEKUSER, tid, 0, 0);
	return errno == 0;
}

/* Returns true when a held thread is in the memory of `ref`, which cannot leave it. Without kcmp(2)
 * there are no guests, and the threads of a process have one memory. */
static bool shares_memory(const struct control *c, const struct control_thread *t, pid_t ref)
{
	cleanup_free char *path = NULL;
	long differs = syscall(SYS_kcmp, ref, t->tid, KCMP_VM, 0, 0);

	if (differs >= 0)
		return differs == 0;
	if (errno == ESRCH || t->guest)
		return false;
	path = xasprintf("/proc/%d/task/%d", c->pid, t->tid);
	return access(path, F_OK) == 0;
}

static bool is_in_place(struct control *c, const struct control_thread *t, pid_t ref)
{
	uint64_t pc, sp;

	if (t->blocked)
		return control_vfork_child(c->pid, t->tid, &pc, &sp) == t->child;
	return shares_memory(c, t, ref) && is_held(t->tid);
}

/* Returns a thread of the process that cannot execute a program: a held one, or one that waits for
 * a guest that is held. */
static pid_t fixed_thread(const struct control *c)
{
	pid_t blocked = 0;

	for (uint32_t i = 0; i < c->threads.n; i++) {
		const struct control_thread *t = &c->threads.v[i];

		if (!t->guest && !t->blocked)
			return t->tid;
		if (t->blocked)
			blocked = t->tid;
	}
	return blocked;
}

/* Opens the memory of the process once its threads have stopped, and lets go of each thread that is
 * in another memory. PTRACE_SEIZE waits while a thread executes a program, and then holds it in
 * this program, which may be setuid. Only threads that are checked here get registers that were
 * computed from this memory. Sets *ret_more when it has let go of a thread. */
static struct err *prove(struct control *c, bool *ret_more)
{
	const pid_t ref = fixed_thread(c);
	struct err *e;

	c->maps_known = false;
	if (!ref)
		return NULL;
	c->alive = ref;
	e = control_open_mem(c);
	if (e && e->code == ENOENT) { /* it was killed */
		err_free(e);
		e = NULL;
		forget_guest(c, ref);
		*ret_more = true;
		return NULL;
	}
	for (uint32_t i = c->threads.n; !e && i-- > 0;) {
		struct control_thread *t;

		if (i >= c->threads.n)
			continue;
		t = &c->threads.v[i];
		t->proved = is_in_place(c, t, ref);
		if (t->proved)
			continue;
		*ret_more = true;
		if (t->blocked && t->seized) { /* it stops, now that it waits no more */
			t->blocked = false;
			t->child = 0;
			t->pending = true;
			continue;
		}
		if (t->seized)
			control_detach(t->tid);
		forget_guest(c, t->tid);
	}
	return e;
}

struct err *control_stop_more(struct control *c, int timeout_ms)
{
	enum { ROUNDS = 50 };
	const uint64_t timeout = (uint64_t)timeout_ms * 1000000, deadline = now_ns() + timeout;
	struct err *e = NULL;
	bool more = true;

	for (int round = 0; !e && more; round++) {
		more = false;
		e = seize_new(c, &more);
		e = e ?: wait_threads(c, deadline, timeout);
		e = e ?: prove(c, &more);
		if (!e && more && round > ROUNDS && now_ns() > deadline)
			e = err_new(
				ETIMEDOUT,
				"process %d (%s) starts threads faster than they can be stopped",
				c->pid, c->name);
	}
	if (!e && !c->threads.n)
		e = control_gone(c);
	for (uint32_t i = 0; !e && i < c->threads.n; i++)
		if (!c->threads.v[i].blocked && !c->threads.v[i].guest)
			control_cancel_call(c, &c->threads.v[i]);
	return e ?: control_put_regs(c);
}

/* Stops the process. Of two tracers that stop it at the same time, a tracer that meets the other's
 * thread releases all of its threads and tries again, so that they do not each hold a part. The
 * main thread is seized first, so that one of them wins. */
struct err *control_stop(struct control *c, int timeout_ms)
{
	struct err *e = NULL;

	assert(!c->stopped);
	c->stop_begun = now_ns();
	control_rescue_begin();
	do {
		err_free(e);
		c->alive = control_living_thread(c->pid);
		if (!c->alive) {
			e = control_gone(c);
			break;
		}
		free(c->auxv);
		c->auxv = NULL;
		c->stopped = true;
		e = control_stop_more(c, timeout_ms);
		if (e)
			err_free(control_resume(c));
		if (e && e->code == EAGAIN)
			nanosleep(&(struct timespec){ .tv_nsec = 300000 + now_ns() % 700000 },
				  NULL);
	} while (e && e->code == EAGAIN);
	control_rescue_end();
	return e;
}

/* *ret_blocked: all of its threads wait in vfork(2). */
static bool any_can_call(struct control *c, bool *ret_blocked)
{
	*ret_blocked = true;
	for (uint32_t i = 0; i < c->threads.n; i++) {
		if (c->service >= 0 || control_may_borrow(c, &c->threads.v[i]))
			return true;
		*ret_blocked &= c->threads.v[i].blocked || c->threads.v[i].guest;
	}
	return false;
}

struct err *control_stop_to_call(struct control *c, int timeout_ms)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000;

	for (;;) {
		struct err *e = control_stop(c, timeout_ms);
		bool blocked;

		if (e || any_can_call(c, &blocked))
			return e;
		e = control_resume(c);
		if (e)
			return e;
		if (now_ns() > end)
			return err_new(
				EBUSY,
				blocked ? "process %d (%s) waits for its vfork() child, which is still running: try again later"
					: "process %d (%s) has no thread that a system call can be made in: each runs on a stack of its own making, or 32-bit code",
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
		if (!t->proved) /* it has executed another program since it was proved */
			return control_gone(c);
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0 && errno != ESRCH)
			return err_errno(errno, "writing registers of thread %d", t->tid);
		t->changed = false;
	}
	return NULL;
}

struct err *control_resume(struct control *c)
{
	struct err *e = NULL;

	if (!c->stopped)
		return NULL;
	if (c->service >= 0) {
		control_serve_go(c);
		c->threads.n = 0;
		c->stopped = false;
		return NULL;
	}
	control_unstub(c);
	e = control_put_regs(c);
	for (uint32_t i = 0; i < c->threads.n; i++) {
		struct control_thread *t = &c->threads.v[i];

		if (!t->seized)
			continue;
		if (t->pending || t->blocked)
			control_let_go_later(t->tid, t->guest ? t->tid : c->pid);
		else
			control_detach(t->tid);
	}
	c->threads.n = 0;
	c->stopped = false;
	for (int i = 0; !control_settle() && i < 20; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	return e;
}
