/* Copies a stopped process by clone(2), so that it can go on while its memory is read.
 *
 *	a thread of the process    blocks its signals ─ clone ─ gives them back ─ its own registers
 *	                                                  │
 *	the helper, a thread                              '─ clone ─ wait4 ─ exit
 *	                                                       │
 *	the copy, a process of its own                         '─ (stopped) ─ close_range ─ exit_group
 *
 * The copy is traced and stopped from its birth on. It is run for close_range(2) only. It has no
 * signal for its end and is reaped by the helper, so the process sees neither a SIGCHLD nor a
 * child: only wait4(2) with __WALL or __WCLONE finds it. The helper is a thread, which nothing
 * needs to reap. It blocks all signals and uses no memory, neither a stack nor thread-local
 * variables.
 *
 * If the tracer is killed at any instant, all of them end by themselves: the thread restores its
 * registers as after the stub, the copy is killed (PTRACE_O_EXITKILL) or executes its
 * exit_group(2), and the helper reaps it. PTRACE_O_EXITKILL is never set on a thread of the
 * process.
 *
 * No lock keeps two tracers apart, as they may be in other name spaces: the code does, which both
 * see in the process. It is placed and removed only while the process is stopped, which only one
 * tracer can do at a time. A tracer that finds a thread in it makes no copy, and one that ends
 * leaves it there. Code that nobody is in was left by a tracer that was killed, or by one that
 * could not stop the process in time: the next copy uses and removes it.
 *
 * The copy begins with the table of descriptors of the process, leaves it when the process goes on,
 * and has no descriptor then: what the process closes is closed, and when it executes a program, it
 * keeps its table, and with it its locks by fcntl(2). The copy has a copy of the root and working
 * directory: a process that executes a set-user-ID program while another process shares these does
 * not get its privileges. */
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
	"fork_code_masked:\n"
	"	mov $56, %eax\n"
	"	mov $0x50f00, %edi\n" /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM */
	"	xor %esi, %esi\n"
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	syscall\n" /* clone: the helper */
	"fork_code_cloned:\n"
	"	test %eax, %eax\n"
	"	jz 1f\n"
	"	mov $14, %eax\n"
	"	mov $2, %edi\n"
	"	lea -16(%rsp), %rsi\n"
	"	xor %edx, %edx\n"
	"	mov $8, %r10d\n"
	"	syscall\n" /* rt_sigprocmask(SIG_SETMASK, was, NULL, 8) */
	"fork_code_unmasked:\n"
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
	"3:	mov $436, %eax\n"
	"	xor %edi, %edi\n"
	"	mov $-1, %esi\n"
	"	mov $2, %edx\n"
	"	syscall\n" /* close_range(0, ~0, CLOSE_RANGE_UNSHARE) */
	"	mov $231, %eax\n"
	"	xor %edi, %edi\n"
	"	syscall\n" /* exit_group */
	"fork_code_end:\n"
	".popsection\n");
extern const uint8_t fork_code_begin[], fork_code_masked[], fork_code_cloned[],
	fork_code_unmasked[], fork_code_end[];

enum {
	MASKS = 16, /* bytes of the signal masks */
	FORK_MS = 5000,
	SYS_MASK = 14,
	GIVE_BACK_MS = 1000,
	END_MS = 10000,
	CLOSE_MS = 1000,
	HALTED_MS = 300, /* the process is stopped by a signal for so long */
	REMOVE_MS = 2000,
};

struct control_copy {
	struct control *control;
	pid_t pid, helper;
	uint64_t code;
	bool inside; /* a thread of the process has not got its own registers back */
	bool let_go; /* the helper is not traced any more, and will end */
};

/* --- making it --- */

static uint32_t code_size(void)
{
	return (uint32_t)(fork_code_end - fork_code_begin);
}

/* Returns true when a thread is in the code, or may return there, or when this is not known. */
static bool is_used(struct control_copy *k)
{
	const struct control_range r = { k->code, k->code + code_size() };
	pid_t tid = 0;

	return err_drop(control_refers(k->control, &r, 1, false, &tid)) || tid;
}

static struct err *place_code(struct control_copy *k)
{
	struct control *c = k->control;
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);
	bool left = false;

	if (e)
		return e;
	control_find_dispatched(c);
	k->code = control_unused_end(c, fork_code_begin, code_size(), CONTROL_STUB_SIZE, &left);
	if (!k->code)
		return err_new(ENOSPC, "its text has no room for the code");
	if (!left)
		return control_write_text(c, k->code, fork_code_begin, code_size());
	if (!is_used(k))
		return NULL;
	k->code = 0;
	return err_new(EBUSY, "another tracer copies it");
}

static bool is_at(const struct control_copy *k, const struct user_regs_struct *r,
		  const uint8_t *label)
{
	return r->rip == k->code + (uint64_t)(label - fork_code_begin);
}

/* Returns true when the kernel makes a call again that has ended with this result, because of a
 * signal or a stop. */
static bool is_made_again(int64_t result)
{
	return result <= -512 && result >= -516; /* ERESTARTSYS ... ERESTART_RESTARTBLOCK */
}

/* Runs a thread, which blocks all signals, to the next beginning or end of a system call, or into
 * its clone(2). SIGSTOP cannot be blocked; it is passed on at once, so that the kernel keeps it in
 * order with SIGCONT. The traced thread runs on in a stopped process. CALL_LATE: it is at another
 * stop. */
static enum control_outcome go_on(struct control_thread *t, uint64_t deadline, int *ret_status)
{
	for (int sig = 0;;) {
		int status;

		if (ptrace(PTRACE_SYSCALL, t->tid, 0, sig) < 0 ||
		    !control_wait(t->tid, &status, deadline))
			return CALL_FAILED;
		*ret_status = status;
		if (!WIFSTOPPED(status) || control_has_executed(t, status))
			return CALL_FAILED;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) || status >> 16 == PTRACE_EVENT_CLONE)
			return CALL_DONE;
		sig = status >> 16 ? 0 : WSTOPSIG(status);
		if ((sig && sig != SIGSTOP) || now_ns() > deadline)
			return CALL_LATE;
	}
}

/* Takes the thread from a stop in the code to one with its own registers and signal mask. */
static bool give_back(struct control_thread *t, uint64_t mask)
{
	uint64_t has = mask;

	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(has), &has) < 0 ||
	    control_end_call(t, now_ns() + GIVE_BACK_MS * 1000000ull) != CALL_DONE)
		return false;
	return has == mask || ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask) == 0;
}

/* Runs the thread from the beginning of its first call to the end of the code. */
static enum control_outcome run_through(struct control_copy *k, struct control_thread *t,
					uint64_t deadline, int64_t *ret_result)
{
	struct user_regs_struct r;
	unsigned long made = 0;

	for (bool ends = false;;) {
		int status;
		enum control_outcome o = go_on(t, deadline, &status);

		if (o != CALL_DONE)
			return o;
		if (status >> 16 == PTRACE_EVENT_CLONE) {
			if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &made) == 0)
				k->helper = (pid_t)made;
			continue;
		}
		ends = !ends;
		if (!ends)
			continue;
		if (ptrace(PTRACE_GETREGS, t->tid, 0, &r) < 0)
			return CALL_FAILED;
		if (is_at(k, &r, fork_code_masked) && r.rax)
			return CALL_LATE;
		if (is_at(k, &r, fork_code_cloned) && !is_made_again((int64_t)r.rax))
			*ret_result = (int64_t)r.rax;
		if (is_at(k, &r, fork_code_unmasked))
			return CALL_DONE;
	}
}

/* Runs the thread, whose registers are set for the code. *ret_result: of its clone(2). CALL_FAILED:
 * it has not got its own registers back. */
static enum control_outcome run_thread(struct control_copy *k, struct control_thread *t,
				       uint64_t deadline, int64_t *ret_result)
{
	int status, sig = 0;
	uint64_t mask;
	enum control_outcome o = control_run_call(t, true, deadline, &status, &sig);

	if (o != CALL_DONE)
		return o;
	/* Now, because a thread that was in sigsuspend(2) had another one at the stop. */
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), &mask) < 0)
		return CALL_FAILED;
	o = run_through(k, t, deadline, ret_result);
	if (o == CALL_DONE)
		return control_end_call(t, deadline);
	return o == CALL_LATE && give_back(t, mask) ? CALL_LATE : CALL_FAILED;
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
		k->inside = true;
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &r) < 0)
			return control_gone(c);
		o = run_thread(k, t, deadline, &result);
		k->inside = o == CALL_FAILED;
	}
	(void)ptrace(PTRACE_SETOPTIONS, t->tid, 0, c->options);
	if (result < 0)
		return err_new((int)-result, "it may not start a thread: %s",
			       strerror((int)-result));
	return o == CALL_DONE && k->helper ? NULL : err_new(EAGAIN, "it does not start a thread");
}

/* Waits for the first stop of a thread or process that clone(2) has made. */
static bool wait_born(pid_t *tid, uint64_t deadline)
{
	int status;

	if (!control_wait(*tid, &status, deadline))
		return false;
	if (!WIFSTOPPED(status))
		*tid = 0; /* it has ended, and its number is free */
	return status >> 16 == PTRACE_EVENT_STOP;
}

static void let_helper_go(struct control_copy *k)
{
	k->let_go = ptrace(PTRACE_DETACH, k->helper, 0, 0) == 0;
	if (!k->let_go)
		control_let_go_later(k->helper, k->control->pid);
}

/* Waits for the helper. It gets no stack pointer, so that no tracer has it make a call on the stack
 * of the thread that made it. */
static bool take_helper(struct control_copy *k, uint64_t deadline)
{
	struct user_regs_struct r;

	if (!wait_born(&k->helper, deadline) || ptrace(PTRACE_GETREGS, k->helper, 0, &r) < 0)
		return false;
	r.rsp = 0;
	return ptrace(PTRACE_SETREGS, k->helper, 0, &r) == 0;
}

/* Runs the helper to the end of its clone(2). *ret_result: of it. */
static enum control_outcome run_helper(struct control_copy *k, uint64_t deadline,
				       int64_t *ret_result)
{
	struct control_thread t = { .tid = k->helper, .proved = true };
	struct user_regs_struct r;
	unsigned long made = 0;

	for (bool ends = true;;) {
		int status;
		enum control_outcome o = go_on(&t, deadline, &status);

		if (o != CALL_DONE)
			return o;
		if (status >> 16 == PTRACE_EVENT_CLONE) {
			if (ptrace(PTRACE_GETEVENTMSG, t.tid, 0, &made) == 0)
				k->pid = (pid_t)made;
			continue;
		}
		ends = !ends;
		if (!ends)
			continue;
		if (ptrace(PTRACE_GETREGS, t.tid, 0, &r) < 0)
			return CALL_FAILED;
		*ret_result = (int64_t)r.rax;
		if (!is_made_again(*ret_result))
			return CALL_DONE;
	}
}

static struct err *make_copy(struct control_copy *k, uint64_t deadline)
{
	const int options = k->control->options | PTRACE_O_EXITKILL;
	int64_t result = 0;
	bool made = take_helper(k, deadline) && run_helper(k, deadline, &result) == CALL_DONE;

	if (k->pid && wait_born(&k->pid, deadline) &&
	    ptrace(PTRACE_SETOPTIONS, k->pid, 0, options) == 0 && made)
		return NULL;
	return made && result < 0
		       ? err_new((int)-result, "it may not be copied: %s", strerror((int)-result))
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
		if (!ret && !control_filtered(c->pid, t->tid) && !control_dispatches(c, t) &&
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

bool control_copy_lives(const struct control_copy *k)
{
	char state = control_thread_state(k->pid, k->pid);

	return state && state != 'Z' && state != 'X';
}

void control_copy_close(struct control_copy *k)
{
	const uint64_t deadline = now_ns() + CLOSE_MS * 1000000ull;
	struct control_thread t = { .tid = k->pid, .proved = true };
	int status = SIGTRAP << 8 | 0x7f; /* stopped */

	assert(!k->control->stopped);
	/* to the beginning, and to the end */
	if (go_on(&t, deadline, &status) == CALL_DONE)
		(void)go_on(&t, deadline, &status);
	if (!WIFSTOPPED(status))
		k->pid = 0; /* it has ended, and its number is free */
}

/* --- its end --- */

/* Waits until the helper has ended. Returns false when it has not in time, or when a signal has
 * stopped the process: it ends later. */
static bool wait_helper(const struct control_copy *k)
{
	const uint64_t begun = now_ns(), end = begun + END_MS * 1000000ull;
	uint64_t ran = begun;

	for (;;) {
		char state = control_thread_state(k->control->pid, k->helper);
		uint64_t now = now_ns();

		if (!state)
			return true;
		if (state != 'T')
			ran = now;
		if (now > end || now - ran > HALTED_MS * 1000000ull)
			return false;
		control_wait_a_bit(begun);
	}
}

/* Removes the code, in a stopped process, unless it is used. */
static void remove_code(struct control_copy *k)
{
	static const uint8_t zeros[CONTROL_CODE_MAX];
	uint8_t have[CONTROL_CODE_MAX];

	if (is_used(k) || err_drop(control_read(k->control, k->code, have, code_size())) ||
	    memcmp(have, fork_code_begin, code_size()))
		return;
	(void)err_drop(control_write_text(k->control, k->code, zeros, code_size()));
}

uint64_t control_copy_free(struct control_copy *k)
{
	uint64_t begun, ret = 0;
	int status = 0;

	if (!k)
		return 0;
	if (k->pid && kill(k->pid, SIGKILL) == 0)
		while (control_wait(k->pid, &status, now_ns() + END_MS * 1000000ull) &&
		       WIFSTOPPED(status))
			;
	if (!k->code || k->inside || (k->helper && !(k->let_go && wait_helper(k)))) {
		free(k);
		return 0;
	}
	begun = now_ns();
	if (k->control->stopped) {
		remove_code(k);
	} else if (!err_drop(control_stop(k->control, REMOVE_MS))) {
		remove_code(k);
		(void)err_drop(control_resume(k->control));
		ret = now_ns() - begun;
	}
	free(k);
	return ret;
}
