/* Copies a stopped process by clone(2), so that it can go on while its memory is read.
 *
 *	a thread of the process    blocks its signals ─ clone ─ gives them back ─ its own registers
 *	                                                  │
 *	the helper, a thread                              '─ clone ─ wait4 ─ exit
 *	                                                       │
 *	the copy, a process of its own                         '─ (stopped by ptrace) ─ exit_group
 *
 * The copy is traced and stopped from its birth on, and is never run. It has no signal for its end
 * and is reaped by the helper, so the process sees neither a SIGCHLD nor a child: only wait4(2)
 * with __WALL or __WCLONE finds it. The helper is a thread, which nothing needs to reap. It blocks
 * all signals and uses no memory, neither a stack nor thread-local variables.
 *
 * If the tracer is killed at any instant, all of them end by themselves: the thread restores its
 * registers as after the stub, the copy is killed (PTRACE_O_EXITKILL) or executes its
 * exit_group(2), and the helper reaps it. PTRACE_O_EXITKILL is never set on a thread of the
 * process.
 *
 * The copy shares the table of descriptors, so that a descriptor that the process closes is closed.
 * It has a copy of the root and working directory: a process that executes a set-user-ID program
 * while another process shares these does not get its privileges. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "target_private.h"

/* The code of all three. It ends for the thread as the stub of target_syscall.c does. The words of
 * the signal masks are in the red zone of the stack pointer with which it begins: {mask that was,
 * all signals}. */
__asm__(".pushsection .rodata\n"
	"fork_code_begin:\n"
	"	syscall\n" /* rt_sigprocmask(SIG_SETMASK, all, was, 8) */
	"	mov $56, %eax\n"
	"	mov $0x50f00, %edi\n" /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM */
	"	xor %esi, %esi\n"
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	syscall\n" /* clone: the helper */
	"	test %eax, %eax\n"
	"	jz 1f\n"
	"	mov $14, %eax\n"
	"	mov $2, %edi\n"
	"	lea -16(%rsp), %rsi\n"
	"	xor %edx, %edx\n"
	"	mov $8, %r10d\n"
	"	syscall\n" /* rt_sigprocmask(SIG_SETMASK, was, NULL, 8) */
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	pop %r11; pop %r10; pop %r9; pop %r8; pop %rax; pop %rcx\n"
	"	pop %rdx; pop %rsi; pop %rdi; popf\n"
	"	ret $128\n"
	"1:	mov $56, %eax\n"
	"	mov $0x400, %edi\n" /* CLONE_FILES */
	"	xor %esi, %esi\n"
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	syscall\n" /* clone: the copy */
	"	test %eax, %eax\n"
	"	jz 3f\n"
	"	js 2f\n"
	"	mov %eax, %edi\n"
	"	xor %esi, %esi\n"
	"	mov $0x40000000, %edx\n" /* __WALL */
	"	xor %r10d, %r10d\n"
	"	mov $61, %eax\n"
	"	syscall\n" /* wait4 */
	"2:	mov $60, %eax\n"
	"	xor %edi, %edi\n"
	"	syscall\n" /* exit, of the thread */
	"3:	mov $231, %eax\n"
	"	xor %edi, %edi\n"
	"	syscall\n" /* exit_group */
	"fork_code_end:\n"
	".popsection\n");
extern const uint8_t fork_code_begin[], fork_code_end[];

enum {
	MASKS = 16, /* bytes of the signal masks */
	FORK_MS = 5000,
	SYS_MASK = 14,
	STOPS_OF_CLONE = 4, /* stops of the thread up to the end of the clone: two for each call */
	STOPS = 6,
	END_MS = 10000,
	HELPER_MS = 1000,
};

struct control_copy {
	struct control *control;
	pid_t pid, helper;
	uint64_t code;
	bool code_left; /* another tracer has left it there, whose helper may use it */
	bool let_go;    /* the helper is not traced any more, and will end */
};

/* --- making it --- */

static struct err *place_code(struct control_copy *k)
{
	struct control *c = k->control;
	const uint32_t n = (uint32_t)(fork_code_end - fork_code_begin);
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);

	if (e)
		return e;
	k->code = control_unused_end(c, fork_code_begin, n, CONTROL_STUB_SIZE, &k->code_left);
	if (!k->code)
		return err_new(ENOSPC, "its text has no room for the code");
	return k->code_left ? NULL : control_write_text(c, k->code, fork_code_begin, n);
}

/* Runs the thread through the code. *ret_result: of its clone(2). */
static enum control_outcome run_thread(struct control_copy *k, struct control_thread *t,
				       uint64_t deadline, int64_t *ret_result)
{
	struct user_regs_struct r;
	int sig = 0;

	for (int stops = 0; stops < STOPS;) {
		unsigned long made = 0;
		int status;
		enum control_outcome o = control_run_call(t, !stops, deadline, &status, &sig);

		if (o != CALL_DONE)
			return o;
		if (status >> 16 == PTRACE_EVENT_CLONE) {
			if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &made) == 0)
				k->helper = (pid_t)made;
			continue;
		}
		if (++stops != STOPS_OF_CLONE)
			continue;
		if (ptrace(PTRACE_GETREGS, t->tid, 0, &r) < 0)
			return CALL_FAILED;
		*ret_result = (int64_t)r.rax;
	}
	return control_end_call(t, deadline);
}

static struct err *make_helper(struct control_copy *k, struct control_thread *t, uint64_t deadline)
{
	struct control *c = k->control;
	enum control_outcome o = CALL_AGAIN;
	int64_t result = 0;

	if (ptrace(PTRACE_SETOPTIONS, t->tid, 0, c->options | PTRACE_O_TRACECLONE) < 0)
		return control_gone(c);
	while (o == CALL_AGAIN) {
		struct user_regs_struct r = t->regs;
		const uint64_t masks[2] = { 0, ~0ull };
		uint64_t sp;
		struct err *e = control_write_frame(c, t, &sp);

		e = e ?: control_write(c, sp - MASKS, masks, sizeof(masks));
		if (e)
			return e;
		r.rsp = sp;
		r.rip = k->code;
		r.rax = SYS_MASK;
		r.orig_rax = (uint64_t)-1;
		r.rdi = SIG_SETMASK;
		r.rsi = sp - MASKS / 2;
		r.rdx = sp - MASKS;
		r.r10 = sizeof(masks[0]);
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &r) < 0)
			return control_gone(c);
		o = run_thread(k, t, deadline, &result);
	}
	(void)ptrace(PTRACE_SETOPTIONS, t->tid, 0, c->options);
	if (result < 0)
		return err_new((int)-result, "it may not start a thread: %s",
			       strerror((int)-result));
	return o == CALL_DONE && k->helper ? NULL : err_new(EAGAIN, "it does not start a thread");
}

/* Waits for the first stop of a thread or process that clone(2) has made. */
static bool wait_born(pid_t tid, uint64_t deadline)
{
	int status;

	return control_wait(tid, &status, deadline) && WIFSTOPPED(status) &&
	       status >> 16 == PTRACE_EVENT_STOP;
}

static void let_helper_go(struct control_copy *k)
{
	k->let_go = ptrace(PTRACE_DETACH, k->helper, 0, 0) == 0;
	if (!k->let_go)
		control_let_go_later(k->helper, k->control->pid);
}

/* Runs the helper to the end of its clone(2). */
static struct err *make_copy(struct control_copy *k, uint64_t deadline)
{
	const int options = k->control->options | PTRACE_O_EXITKILL;
	struct control_thread t = { .tid = k->helper, .proved = true };
	struct user_regs_struct r = { 0 };
	bool born = wait_born(k->helper, deadline);
	int sig = 0;

	for (int stops = 0; born && stops < 2;) {
		unsigned long made = 0;
		int status;

		born = ptrace(PTRACE_SYSCALL, t.tid, 0, 0) == 0 &&
		       control_wait(t.tid, &status, deadline) && WIFSTOPPED(status);
		if (!born)
			break;
		if (status >> 16 == PTRACE_EVENT_CLONE &&
		    ptrace(PTRACE_GETEVENTMSG, t.tid, 0, &made) == 0)
			k->pid = (pid_t)made;
		else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			stops++;
		else if (status >> 16 != PTRACE_EVENT_STOP)
			sig = WSTOPSIG(status);
		born = !sig && now_ns() < deadline;
	}
	if (k->pid && wait_born(k->pid, deadline) &&
	    ptrace(PTRACE_SETOPTIONS, k->pid, 0, options) == 0 && born)
		return NULL;
	if (born)
		(void)ptrace(PTRACE_GETREGS, t.tid, 0, &r);
	return (int64_t)r.rax < 0
		       ? err_new((int)-r.rax, "it may not be copied: %s", strerror((int)-r.rax))
		       : err_new(ETIMEDOUT, "it is not copied in time");
}

/* Returns a thread that can make the calls, or NULL. A guest runs in the process's memory. */
static struct control_thread *caller(struct control *c)
{
	struct control_thread *ret = NULL;

	for (uint32_t i = 0; i < c->threads.n; i++) {
		struct control_thread *t = &c->threads.v[i];

		if (t->blocked || t->guest || !t->proved)
			return NULL;
		if (!ret && !control_filtered(c->pid, t->tid) &&
		    !control_in_sequence(c->pid, t->tid) && control_stack_is_sane(c, t, MASKS))
			ret = t;
	}
	return ret;
}

struct err *control_copy(struct control *c, struct control_copy **ret)
{
	const uint64_t deadline = now_ns() + FORK_MS * 1000000ull;
	struct control_copy *k;
	struct control_thread *t;
	struct err *e;

	assert(c->stopped);
	if (c->service >= 0)
		return err_new(ENOTSUP, "it serves itself");
	e = control_put_regs(c);
	if (e)
		return e;
	k = xcalloc(1, sizeof(*k));
	k->control = c;
	e = place_code(k);
	t = e ? NULL : caller(c);
	if (!e && !t)
		e = err_new(EBUSY, "no thread of it can make a system call now");
	e = e ?: make_helper(k, t, deadline);
	e = e ?: make_copy(k, deadline);
	if (k->helper)
		let_helper_go(k);
	if (e)
		control_copy_free(k);
	else
		*ret = k;
	return e;
}

pid_t control_copy_pid(const struct control_copy *k)
{
	return k->pid;
}

/* --- its end --- */

/* Waits until the helper has ended. Returns false when it has not in time: SIGSTOP holds it,
 * too. */
static bool wait_helper(const struct control_copy *k)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d", k->control->pid, k->helper);
	const uint64_t begun = now_ns(), end = begun + HELPER_MS * 1000000ull;

	while (access(path, F_OK) == 0) {
		if (now_ns() > end)
			return false;
		control_wait_a_bit(begun);
	}
	return true;
}

void control_copy_free(struct control_copy *k)
{
	static const uint8_t zeros[CONTROL_CODE_MAX];
	const uint32_t n = (uint32_t)(fork_code_end - fork_code_begin);
	int status = 0;

	if (!k)
		return;
	if (k->pid && kill(k->pid, SIGKILL) == 0)
		while (control_wait(k->pid, &status, now_ns() + END_MS * 1000000ull) &&
		       WIFSTOPPED(status))
			;
	if (k->code && !k->code_left && (!k->helper || (k->let_go && wait_helper(k))))
		err_free(control_write_text(k->control, k->code, zeros, n));
	free(k);
}
