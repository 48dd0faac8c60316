/* Makes system calls in the target.
 *
 *	stub:  syscall; pop r15 ... rdi; popf; ret 128
 *
 * The stub runs with the stack pointer at a frame below the thread's red zone. The frame holds the
 * thread's registers in this order, and the address at which it continues. If the tracer is killed
 * at any instant, the thread makes the call, restores its registers and continues. A living tracer
 * reads the result at the end of the system call and sets the registers itself, so that the kernel
 * handles the interrupted system call as usual.
 *
 * The stub lies in the unused end of an executable page, behind the segment's last byte, where the
 * page holds zeros. */
#define _GNU_SOURCE
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "target_private.h"

static const uint8_t stub_code[CONTROL_STUB_SIZE] = {
	0x0f, 0x05, /* syscall */
	0x41, 0x5f,
	0x41, 0x5e,
	0x41, 0x5d,
	0x41, 0x5c,
	0x5d, 0x5b, /* pop r15 r14 r13 r12 rbp rbx */
	0x41, 0x5b,
	0x41, 0x5a,
	0x41, 0x59,
	0x41, 0x58, /* pop r11 r10 r9 r8 */
	0x58, 0x59,
	0x5a, 0x5e,
	0x5f, /* pop rax rcx rdx rsi rdi */
	0x9d, /* popf */
	0xc2, CONTROL_RED_ZONE,
	0x00, /* ret 128 */
	0xcc, 0xcc,
	0xcc,
};

struct frame { /* in the order of the pops */
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, flags,
		rip;
};

/* --- the place of the stub --- */

/* Returns true when [addr, m->end) is behind the last byte of the segment that m maps. Reads the
 * headers from the mapping of the file's first page. */
static bool is_unused_end(struct control *c, const struct mapping *m, uint64_t addr)
{
	Elf64_Ehdr h;
	Elf64_Phdr ph;

	for (uint32_t i = 0; i < c->maps.n; i++) {
		const struct mapping *head = &c->maps.v[i];

		if (head->inode != m->inode || head->offset || strcmp(head->path, m->path) ||
		    !head->read)
			continue;
		if (control_pread(c, &h, sizeof(h), head->start) != sizeof(h) ||
		    memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_phentsize != sizeof(ph) ||
		    h.e_phoff > head->end - head->start)
			return false;
		for (int k = 0; k < h.e_phnum && k < 64; k++) {
			uint64_t page, end;

			if (control_pread(c, &ph, sizeof(ph),
					  head->start + h.e_phoff + (uint64_t)k * sizeof(ph)) !=
			    sizeof(ph))
				return false;
			page = ph.p_offset & ~(uint64_t)(CONTROL_PAGE - 1);
			if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || m->offset < page ||
			    m->offset >= ph.p_offset + ph.p_filesz)
				continue;
			end = m->start - (m->offset - page) + (ph.p_offset - page) + ph.p_memsz;
			return end <= addr && end > m->start;
		}
		return false;
	}
	return false;
}

uint64_t control_unused_end(struct control *c, const uint8_t *code, uint32_t n, uint32_t behind,
			    bool *ret_left)
{
	uint8_t have[CONTROL_CODE_MAX];
	uint32_t zeros;

	assert(n <= sizeof(have));
	for (uint32_t i = 0; i < c->maps.n; i++) {
		const struct mapping *m = &c->maps.v[i];
		uint64_t at = m->end - behind - n;

		if (!m->read || m->write || !m->exec || m->shared || !m->inode ||
		    !strncmp(m->path, "/memfd:", 7) ||
		    (c->dispatched.hi && (at < c->dispatched.lo || at >= c->dispatched.hi)))
			continue;
		if (control_pread(c, have, n, at) != (ssize_t)n)
			continue;
		for (zeros = 0; zeros < n && !have[zeros]; zeros++)
			;
		*ret_left = !memcmp(have, code, n);
		if ((*ret_left || zeros == n) && is_unused_end(c, m, at))
			return at;
	}
	return 0;
}

static bool find_unused_end(struct control *c)
{
	uint64_t at;

	control_find_dispatched(c);
	at = control_unused_end(c, stub_code, sizeof(stub_code), 0, &c->stub_left);
	if (!at && c->dispatched.hi) {
		c->dispatched = (struct control_range){ 0 };
		at = control_unused_end(c, stub_code, sizeof(stub_code), 0, &c->stub_left);
	}
	if (!at)
		return false;
	c->stub = at;
	c->stub_known = true;
	memset(c->stub_before, 0, sizeof(c->stub_before));
	return true;
}

/* Finds the code that ran first, in the dynamic linker or the program. It never runs again. Returns
 * false when a thread is still there. */
static bool find_start(struct control *c)
{
	uint64_t base = control_auxv(c, AT_BASE), at = 0;
	Elf64_Ehdr h;

	if (base && control_pread(c, &h, sizeof(h), base) == sizeof(h) &&
	    !memcmp(h.e_ident, ELFMAG, SELFMAG))
		at = base + h.e_entry;
	else if (!base)
		at = control_auxv(c, AT_ENTRY);
	for (uint32_t i = 0; i < c->threads.n; i++)
		if (c->threads.v[i].regs.rip + 64 > at && c->threads.v[i].regs.rip < at + 64)
			return false;
	if (!at ||
	    control_pread(c, c->stub_before, sizeof(c->stub_before), at) != sizeof(c->stub_before))
		return false;
	c->stub = at;
	c->stub_left = !memcmp(c->stub_before, stub_code, sizeof(stub_code));
	c->stub_known = !c->stub_left;
	return true;
}

static struct err *place_stub(struct control *c)
{
	const struct mappings *maps;
	uint8_t have[CONTROL_STUB_SIZE];
	struct err *e = NULL;

	if (!c->stub) {
		e = control_maps(c, &maps);
		if (e)
			return e;
		if (!find_unused_end(c) && !find_start(c) && !control_auxv(c, AT_ENTRY))
			return control_gone(c); /* its memory has been taken down */
		if (!c->stub)
			return err_new(ENOSPC,
				       "process %d (%s) has no room in its text for a system call",
				       c->pid, c->name);
		if (!c->stub_left)
			e = control_write_text(c, c->stub, stub_code, sizeof(stub_code));
	}
	e = e ?: control_read(c, c->stub, have, sizeof(have));
	if (!e && memcmp(have, stub_code, sizeof(have)))
		e = err_new(
			EIO,
			"process %d (%s): its text at 0x%llx does not keep the bytes written to it",
			c->pid, c->name, (unsigned long long)c->stub);
	return e;
}

void control_unstub(struct control *c)
{
	struct control_range r = { c->stub, c->stub + CONTROL_STUB_SIZE };
	uint8_t have[CONTROL_STUB_SIZE];
	pid_t tid = 0;
	struct err *e = NULL;

	if (!c->stub)
		return;
	c->stub = c->caller = 0;
	if (c->stub_left)
		e = control_refers(c, &r, 1, false, &tid);
	if (!e && !tid && c->stub_known)
		e = control_read(c, r.lo, have, sizeof(have));
	if (!e && !tid && c->stub_known && !memcmp(have, stub_code, sizeof(have)))
		e = control_write_text(c, r.lo, c->stub_before, sizeof(c->stub_before));
	err_free(e); /* no thread reaches what remains there, and the next stub replaces it */
}

/* --- the call --- */

/* Returns the program counter and registers with which the thread will continue, after the kernel
 * has set up a restart. */
static void control_restarted(const struct control_thread *t, struct user_regs_struct *ret)
{
	*ret = t->regs;
	if (!t->in_syscall)
		return;
	ret->rip -= 2;
	ret->rax = (int64_t)t->regs.rax == -516 /* ERESTART_RESTARTBLOCK */ ? SYS_restart_syscall
									    : t->regs.orig_rax;
}

bool control_cancel_call(struct control *c, struct control_thread *t)
{
	uint64_t at = t->in_syscall ? t->regs.rip - 2 : t->regs.rip;
	uint8_t have[CONTROL_STUB_SIZE];
	struct frame f;

	/* c->mem is the memory of proved threads */
	if (!t->proved || !control_is_64bit(&t->regs) ||
	    control_pread(c, have, sizeof(have), at) != sizeof(have) ||
	    memcmp(have, stub_code, sizeof(have)) ||
	    control_pread(c, &f, sizeof(f), t->regs.rsp) != sizeof(f))
		return false;
	t->regs.rsp += sizeof(f) + CONTROL_RED_ZONE;
	t->regs.r15 = f.r15;
	t->regs.r14 = f.r14;
	t->regs.r13 = f.r13;
	t->regs.r12 = f.r12;
	t->regs.rbp = f.rbp;
	t->regs.rbx = f.rbx;
	t->regs.r11 = f.r11;
	t->regs.r10 = f.r10;
	t->regs.r9 = f.r9;
	t->regs.r8 = f.r8;
	t->regs.rax = f.rax;
	t->regs.rcx = f.rcx;
	t->regs.rdx = f.rdx;
	t->regs.rsi = f.rsi;
	t->regs.rdi = f.rdi;
	t->regs.eflags = f.flags;
	t->regs.rip = f.rip;
	t->regs.orig_rax = (uint64_t)-1;
	t->in_syscall = false;
	t->changed = true;
	return true;
}

bool control_is_64bit(const struct user_regs_struct *r)
{
	/* the kernel's __USER_CS, and that of a guest of Xen; Wine has 32-bit code in 64-bit
	 * processes */
	enum { CODE_64 = 0x33, XEN_CODE_64 = 0xe033 };

	return r->cs == CODE_64 || r->cs == XEN_CODE_64;
}

bool control_find_stack(const struct mappings *maps, bool first_thread, uint64_t fs_base,
			uint64_t sp, uint64_t *ret_lo, uint64_t *ret_hi)
{
	enum { GROWS = 8 << 20 }; /* the kernel keeps this room below the first thread's stack */

	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		bool first = !strcmp(m->path, "[stack]");

		if (sp <= m->start || sp > m->end || !m->read || !m->write)
			continue;
		/* The first thread's block is not in its stack. It may share a mapping with blocks
		 * of malloc(3). */
		if (!first && (first_thread || fs_base < sp || fs_base >= m->end))
			return false;
		*ret_lo = m->start - (first ? GROWS : 0);
		*ret_hi = first ? m->end : fs_base;
		return true;
	}
	return false;
}

/* Returns true when a call of the thread may write below its stack pointer. In a system call it
 * runs C code, which has room there. */
static bool has_room(struct control *c, const struct control_thread *t)
{
	uint64_t lo, hi;

	return (int64_t)t->regs.orig_rax >= 0 ||
	       control_find_stack(&c->maps, t->tid == c->pid, t->regs.fs_base, t->regs.rsp, &lo,
				  &hi);
}

bool control_may_borrow(struct control *c, const struct control_thread *t)
{
	if (t->blocked || t->guest || !control_is_64bit(&t->regs) || control_dispatches(c, t))
		return false;
	if ((int64_t)t->regs.orig_rax < 0 && !c->maps_known) {
		const struct mappings *maps;

		err_free(control_maps(c, &maps));
	}
	return has_room(c, t);
}

bool control_stack_is_sane(struct control *c, const struct control_thread *t, uint32_t more)
{
	uint64_t hi = t->regs.rsp, lo = hi - CONTROL_RED_ZONE - sizeof(struct frame) - more;

	if (!control_is_64bit(&t->regs))
		return false;
	if (c->caller == t->tid && lo >= c->caller_lo && hi <= c->caller_hi)
		return true;
	if (!has_room(c, t))
		return false;
	for (uint32_t i = 0; i < c->maps.n; i++) {
		const struct mapping *m = &c->maps.v[i];
		bool grows = !strcmp(m->path, "[stack]");

		if (hi <= m->start || hi > m->end || !m->read || !m->write ||
		    (lo < m->start && !grows))
			continue;
		c->caller = t->tid;
		c->caller_lo = grows ? lo : m->start;
		c->caller_hi = m->end;
		return true;
	}
	return false;
}

struct err *control_write_frame(struct control *c, const struct control_thread *t, uint64_t *ret_sp)
{
	struct user_regs_struct r;
	struct frame f;

	control_restarted(t, &r);
	f = (struct frame){ r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11,    r.r10, r.r9,
			    r.r8,  r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.eflags, r.rip };
	*ret_sp = r.rsp - CONTROL_RED_ZONE - sizeof(f);
	return control_write(c, *ret_sp, &f, sizeof(f));
}

bool control_has_executed(struct control_thread *t, int status)
{
	if (WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXEC)
		t->proved = false;
	return !t->proved;
}

static const uint64_t CALL_NS =
	10ull * 1000 * 1000 * 1000; /* limit of a call, with all its attempts */

/* Another process in the same memory can change the code meanwhile: a thread that executes a
 * program there gets no registers any more. */
enum control_outcome control_run_call(struct control_thread *t, bool first, uint64_t deadline,
				      int *ret_status, int *ret_sig)
{
	for (;;) {
		int status;

		if (ptrace(PTRACE_SYSCALL, t->tid, 0, 0) < 0 ||
		    !control_wait(t->tid, &status, deadline) || !WIFSTOPPED(status) ||
		    control_has_executed(t, status))
			return CALL_FAILED;
		*ret_status = status;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return CALL_DONE;
		if (status >> 16 == PTRACE_EVENT_STOP) {
			if (now_ns() < deadline)
				continue;
			if (!first || ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0)
				return CALL_FAILED;
			return CALL_LATE;
		}
		/* A signal came before the call. The thread handles it as without the call, and
		 * then the call is tried again. */
		*ret_sig = WSTOPSIG(status);
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0)
			return CALL_FAILED;
		if (*ret_sig == SIGSYS) { /* the call itself raised it */
			ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
			ptrace(PTRACE_CONT, t->tid, 0, 0);
			if (control_wait(t->tid, &status, deadline))
				control_wait_interrupt(t->tid, status, deadline);
			return CALL_FAILED;
		}
		if (!control_wait_interrupt(t->tid, status, deadline) || !control_get_regs(t))
			return CALL_FAILED;
		return now_ns() < deadline ? CALL_AGAIN : CALL_LATE;
	}
}

enum control_outcome control_end_call(struct control_thread *t, uint64_t deadline)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) < 0 || ptrace(PTRACE_CONT, t->tid, 0, 0) < 0 ||
	    !control_wait(t->tid, &status, deadline) || control_has_executed(t, status))
		return CALL_FAILED;
	if (ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0)
		return CALL_FAILED;
	if (status >> 16 != PTRACE_EVENT_STOP &&
	    (!control_wait_interrupt(t->tid, status, deadline) || !control_get_regs(t)))
		return CALL_FAILED;
	return CALL_DONE;
}

/* Runs from the stop at which the call's registers are set to a stop at which the thread's own are
 * restored. */
static enum control_outcome run_call(struct control_thread *t, uint64_t deadline,
				     int64_t *ret_value, int *ret_sig)
{
	struct user_regs_struct r;
	int status;

	for (int stops = 0; stops < 2; stops++) {
		enum control_outcome o = control_run_call(t, !stops, deadline, &status, ret_sig);

		if (o != CALL_DONE)
			return o;
	}
	if (ptrace(PTRACE_GETREGS, t->tid, 0, &r) < 0)
		return CALL_FAILED;
	*ret_value = (int64_t)r.rax;
	return control_end_call(t, deadline);
}

static struct err *call_in(struct control *c, struct control_thread *t, long nr,
			   const uint64_t args[6], int64_t *ret_value)
{
	const uint64_t deadline = now_ns() + CALL_NS;
	enum control_outcome o = CALL_AGAIN;
	int sig = 0;

	while (o == CALL_AGAIN) {
		struct user_regs_struct r = t->regs;
		uint64_t sp;
		struct err *e = control_write_frame(c, t, &sp);

		if (e)
			return e;
		r.rsp = sp;
		r.rip = c->stub;
		r.rax = (uint64_t)nr;
		r.orig_rax = (uint64_t)-1;
		r.rdi = args[0];
		r.rsi = args[1];
		r.rdx = args[2];
		r.r10 = args[3];
		r.r8 = args[4];
		r.r9 = args[5];
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &r) < 0)
			return control_gone(c);
		o = run_call(t, deadline, ret_value, &sig);
	}
	if (o == CALL_FAILED && sig == SIGSYS)
		return err_new(
			EPERM,
			"process %d (%s) does not let system calls be made in it (seccomp or Syscall User Dispatch)",
			c->pid, c->name);
	if (o == CALL_LATE)
		return err_new(
			ETIMEDOUT,
			"process %d (%s) is stopped or gets signals again and again, so that no system call can be made in it",
			c->pid, c->name);
	return o == CALL_FAILED ? control_gone(c) : NULL;
}

/* Returns true when the thread may make a call. Suspends its seccomp filter, but no other
 * thread's. */
static bool may_call(const struct control *c, struct control_thread *t)
{
	if (!t->may_call && control_filtered(c->pid, t->tid) &&
	    ptrace(PTRACE_SETOPTIONS, t->tid, 0, c->options | PTRACE_O_SUSPEND_SECCOMP) < 0)
		return false;
	t->may_call = true;
	return true;
}

struct err *control_syscall(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value)
{
	bool filtered = false, dispatched = false;
	struct err *e;

	assert(c->stopped);
	c->maps_known = false;
	if (c->service >= 0)
		return control_serve(c, nr, args, ret_value);
	e = control_put_regs(c);
	e = e ?: place_stub(c);
	if (e)
		return e;
	for (int others = 0; others < 2; others++)
		for (uint32_t i = 0; i < c->threads.n; i++) {
			struct control_thread *t = &c->threads.v[i];

			if (!t->proved || t->blocked || t->guest || (t->tid != c->pid) != others ||
			    !control_stack_is_sane(c, t, 0))
				continue;
			if (control_dispatches(c, t)) {
				dispatched = true;
				continue;
			}
			if (may_call(c, t)) {
				e = call_in(c, t, nr, args, ret_value);
				c->maps_known = false;
				return e;
			}
			filtered = true;
		}
	if (filtered)
		return control_filter_refuses(c->pid, c->name);
	if (dispatched)
		return err_new(
			EPERM,
			"process %d (%s) runs foreign code whose system calls come to a handler of its own (Syscall User Dispatch)",
			c->pid, c->name);
	return err_new(EBUSY, "process %d (%s): no thread can make a system call now", c->pid,
		       c->name);
}
