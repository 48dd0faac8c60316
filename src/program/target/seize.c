/* Seizes single threads, waits for them, and detaches from them.
 *
 * PTRACE_SEIZE waits (cred_guard_mutex) while a thread of the process executes another program. The
 * execve(2) waits until the process's other threads have ended, and a traced thread has not ended
 * before its tracer has reaped it. A tracer that holds one thread and seizes the next may therefore
 * wait for itself, and block the program too. A timer interrupts such a wait, and its handler reaps
 * the threads that have ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/procmem.h"
#include "base/procstatus.h"
#include "target_private.h"

enum {
	SPIN_NS = 60000,
	DETACH_NS = 100000000,
	LEAST_NS = 50000000,
	RESCUE_US = 5000,
	FAULT_LOOKS = 32, /* signals of a thread that are looked at */
	ROUNDS_MIN = 16,  /* signals that are delivered whatever the deadline */
};

/* A thread and its process. The thread gets the process's number when it executes a program. */
struct held {
	pid_t tid, pid;
	volatile sig_atomic_t ended; /* its end is known */
};

/* Threads that were seized but did not stop in time. They cannot be detached before they stop. */
static _Thread_local VEC(struct held) late;

/* Threads that are followed into the program that they will execute. */
static VEC(struct held) followed;

void control_follow(pid_t tid, pid_t pid)
{
	vec_push(&followed, (struct held){ .tid = tid, .pid = pid });
}

void control_unfollow(pid_t tid)
{
	for (uint32_t i = followed.n; i-- > 0;)
		if (followed.v[i].tid == tid)
			followed.v[i] = followed.v[--followed.n];
	if (!followed.n)
		vec_fini(&followed);
}

bool control_followed_ended(pid_t tid)
{
	for (uint32_t i = 0; i < followed.n; i++)
		if (followed.v[i].tid == tid && followed.v[i].ended)
			return true;
	return false;
}

static bool any_followed(pid_t pid)
{
	for (uint32_t i = 0; i < followed.n; i++)
		if (followed.v[i].pid == pid)
			return true;
	return false;
}

/* --- children of this process --- */

/* Children of this process. A tracer of its own child reaps it while waiting, and records its end
 * here. */
static VEC(struct ended {
	pid_t pid;
	int status;
	volatile sig_atomic_t known;
}) children;

void control_adopt(pid_t pid)
{
	vec_push(&children, (struct ended){ .pid = pid });
}

static void note_end(pid_t pid, int status)
{
	for (uint32_t i = 0; i < children.n; i++)
		if (children.v[i].pid == pid) {
			children.v[i].status = status;
			children.v[i].known = 1;
		}
}

static int status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return info->si_status << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Reaps a thread if it has ended, and returns true then. Leaves stops of traced threads in place,
 * although waitid(2) reports them whatever its flags. */
static bool reap(pid_t tid)
{
	const int look = WEXITED | WNOHANG | __WALL;
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)tid, &info, look | WNOWAIT) < 0 || info.si_pid != tid ||
	    (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED &&
	     info.si_code != CLD_DUMPED))
		return false;
	note_end(tid, status_of(&info));
	waitid(P_PID, (id_t)tid, &info, look);
	return true;
}

bool control_ended(pid_t pid, int *ret_status)
{
	reap(pid);
	for (uint32_t i = 0; i < children.n; i++)
		if (children.v[i].pid == pid && children.v[i].known) {
			*ret_status = children.v[i].status;
			return true;
		}
	return false;
}

pid_t control_waitpid(pid_t tid, int *ret_status)
{
	pid_t r = waitpid(tid, ret_status, __WALL | WNOHANG);

	if (r == tid && !WIFSTOPPED(*ret_status))
		note_end(tid, *ret_status);
	return r;
}

/* --- waiting --- */

/* Pauses between two polls. A running thread stops within microseconds, so the first polls yield.
 * On a busy machine a yield takes a turn of every other task, and a sleeper is scheduled sooner. */
void control_wait_a_bit(uint64_t begun)
{
	uint64_t waited = now_ns() - begun;

	if (waited < SPIN_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = waited < 20000000 ? 20000 : 500000 },
			  NULL);
}

/* Waits for a stop or the end of one thread. */
bool control_wait(pid_t tid, int *ret_status, uint64_t deadline)
{
	uint64_t begun = now_ns();

	for (unsigned tries = 0;; tries++) {
		pid_t r = control_waitpid(tid, ret_status);

		if (r == tid)
			return true;
		if (r < 0 && errno != EINTR) {
			*ret_status = 0; /* ended by an exec, or not this tracer's */
			return true;
		}
		if (tries > 20 && now_ns() > deadline)
			return false;
		control_wait_a_bit(begun);
	}
}

static bool is_interrupt_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP;
}

/* Returns true when a signal that the thread's own instruction has raised is on the way. The kernel
 * (get_signal()) stops a thread for its tracer before it takes such a signal from the queue. Its
 * handler may look at the instruction, so the thread's registers must be as they are. Signals that
 * another process sends have no positive code, so nobody can forge these. */
static bool has_fault(pid_t tid)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS };
	const struct __ptrace_peeksiginfo_args first = { .nr = FAULT_LOOKS };
	siginfo_t info[FAULT_LOOKS];
	uint64_t blocked = 0;
	long n = ptrace(PTRACE_PEEKSIGINFO, tid, &first, info);

	if (n <= 0 || ptrace(PTRACE_GETSIGMASK, tid, sizeof(blocked), &blocked))
		return false;
	for (long i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(faults); k++)
			if (info[i].si_signo == faults[k] && info[i].si_code > 0 &&
			    !(blocked >> (faults[k] - 1) & 1))
				return true;
	return false;
}

/* Continues from a stop to one at which no event is pending. Delivers a pending signal, which sets
 * up its handler's frame, and stops the thread in front of the handler's first instruction. Returns
 * false when the thread has ended or the deadline has passed. */
bool control_wait_interrupt(pid_t tid, int status, uint64_t deadline)
{
	/* on a busy machine the deadline may have passed, and the thread stops all the same */
	const uint64_t least = now_ns() + LEAST_NS, until = deadline > least ? deadline : least;

	for (uint32_t rounds = 0;; rounds++) {
		bool interrupted = is_interrupt_stop(status);
		int sig = 0;

		if (!WIFSTOPPED(status))
			return false;
		if (interrupted && rounds > ROUNDS_MIN && now_ns() > deadline)
			return false;
		if (interrupted && !has_fault(tid))
			return true;
		if (interrupted && WSTOPSIG(status) != SIGTRAP)
			return false; /* with the group, which would go on */
		if (!interrupted && !(status >> 16) && WSTOPSIG(status) != (SIGTRAP | 0x80))
			sig = WSTOPSIG(status);
		/* Behind another request to stop, the fault would wait again. */
		if ((!interrupted && ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0) ||
		    ptrace(PTRACE_CONT, tid, 0, sig) < 0)
			return false;
		if (!control_wait(tid, &status, until)) {
			/* a fault that does not come, so that the thread can be let go later */
			if (interrupted)
				ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			return false;
		}
	}
}

/* --- seizing --- */

/* The process whose threads are held while PTRACE_SEIZE is under way. */
static _Thread_local const struct control *volatile seizing;
static _Thread_local volatile sig_atomic_t in_seize;
static struct sigaction alarm_before;

static void rescue(int sig)
{
	const struct control *c = seizing;
	int code = errno;

	if (!in_seize)
		return;
	for (uint32_t i = 0; i < late.n; i++)
		late.v[i].ended |= reap(late.v[i].tid);
	for (uint32_t i = 0; i < followed.n; i++)
		followed.v[i].ended |= reap(followed.v[i].tid);
	for (uint32_t i = 0; c && i < c->threads.n; i++)
		if (c->threads.v[i].seized)
			reap(c->threads.v[i].tid);
	errno = code;
}

void control_rescue_begin(void)
{
	const struct itimerval t = { { .tv_usec = RESCUE_US }, { .tv_usec = RESCUE_US } };
	struct sigaction a = { .sa_handler = rescue, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &a, &alarm_before);
	setitimer(ITIMER_REAL, &t, NULL);
}

void control_rescue_end(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	sigaction(SIGALRM, &alarm_before, NULL);
}

bool control_seize_running(const struct control *c, pid_t tid, int options)
{
	long r;

	seizing = c;
	in_seize = 1;
	r = ptrace(PTRACE_SEIZE, tid, 0, options);
	in_seize = 0;
	return r == 0;
}

bool control_seize(const struct control *c, pid_t tid, int options)
{
	if (!control_seize_running(c, tid, options))
		return false;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return true;
}

/* --- letting go --- */

void control_let_go_later(pid_t tid, pid_t pid)
{
	vec_push(&late, (struct held){ .tid = tid, .pid = pid });
}

void control_detach(pid_t tid)
{
	int status = 0;

	/* The thread was killed, perhaps by an exec(2) that waits until this process reaps it. */
	if (ptrace(PTRACE_DETACH, tid, 0, 0) < 0 &&
	    (!control_wait(tid, &status, now_ns() + DETACH_NS) || WIFSTOPPED(status)))
		control_let_go_later(tid, tid);
}

bool control_is_ours(pid_t tid)
{
	cleanup_free char *status = control_task_file(tid, tid, "status");

	return status && procstatus_number(status, "TracerPid", 0) == getpid();
}

enum gone { LET_GO, NOT_STOPPED, NOT_FOUND };

/* Detaches from the thread traced under this number. It may not have stopped yet. */
static enum gone let_go_of(pid_t tid)
{
	struct control_thread t = { .tid = tid };
	int status;
	pid_t r = control_waitpid(tid, &status);
	int sig = 0;

	if (r > 0 && !WIFSTOPPED(status))
		return LET_GO; /* it has ended */
	if (r < 0)
		return NOT_FOUND;
	if (r == 0 || is_interrupt_stop(status))
		(void)control_get_regs(&t); /* restarts a call that the stop made fail */
	if (r > 0 && status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80))
		sig = WSTOPSIG(status);
	/* Without a status, an earlier call has seen its stop. */
	if (ptrace(PTRACE_DETACH, tid, 0, sig) == 0)
		return LET_GO;
	return control_is_ours(tid) ? NOT_STOPPED : NOT_FOUND;
}

/* Detaches from a thread that may not have stopped yet, or may have executed a program. Returns
 * true when it is done. */
static bool let_go(struct held *h)
{
	enum gone g = h->ended ? LET_GO : let_go_of(h->tid);

	if (g != NOT_FOUND || h->tid == h->pid || !control_is_ours(h->pid))
		return g != NOT_STOPPED;
	if (any_followed(h->pid)) /* which of its threads executes is not known yet */
		return false;
	h->tid = h->pid;
	ptrace(PTRACE_INTERRUPT, h->tid, 0, 0);
	return let_go_of(h->tid) != NOT_STOPPED;
}

bool control_settle(void)
{
	for (uint32_t i = late.n; i-- > 0;)
		if (let_go(&late.v[i]))
			late.v[i] = late.v[--late.n];
	if (!late.n)
		vec_fini(&late);
	return !late.n;
}

/* --- one thread --- */

bool control_in_sequence(pid_t pid, pid_t tid)
{
	enum { GET_RSEQ_CONFIGURATION = 0x420f, CS = 8 /* struct rseq.rseq_cs */ };
	struct {
		uint64_t area;
		uint32_t size, signature, flags, pad;
	} conf = { 0 };
	uint64_t cs = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof(conf), &conf) <= 0 ||
	    !conf.area)
		return false;
	return procmem_read(pid, &cs, sizeof(cs), conf.area + CS) != sizeof(cs) || cs;
}

/* Seizes a thread and stops it where no event is pending. Returns false when it is not held, or
 * will be detached later. */
static bool hold(pid_t pid, pid_t tid, uint64_t deadline)
{
	bool others = !control_settle() || followed.n, held;
	int status;

	if (others)
		control_rescue_begin();
	held = control_seize(NULL, tid, PTRACE_O_TRACESYSGOOD);
	if (others)
		control_rescue_end();
	if (!held)
		return false;
	if (control_wait(tid, &status, deadline) && WIFSTOPPED(status) &&
	    control_wait_interrupt(tid, status, deadline))
		return true;
	control_let_go_later(tid, pid);
	(void)control_settle();
	return false;
}

bool control_glance(pid_t pid, pid_t tid, int timeout_ms,
		    bool (*fn)(void *arg, struct user_regs_struct *regs), void *arg)
{
	struct control_thread t = { .tid = tid };
	bool changed = false;

	if (!hold(pid, tid, now_ns() + (uint64_t)timeout_ms * 1000000))
		return false;
	if (control_get_regs(&t) && (int64_t)t.regs.orig_rax < 0 &&
	    !control_in_sequence(pid, tid) && fn(arg, &t.regs))
		changed = ptrace(PTRACE_SETREGS, tid, 0, &t.regs) == 0;
	control_detach(tid);
	return changed;
}
