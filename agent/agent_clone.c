/* Handles calls behind which descry cannot stay in the process, right before they are made:
 *
 *	clone(2), clone3(2)  with CLONE_VM, when they make a process in this one's memory, which
 *	                     a stop of this process does not stop, or a thread without a thread
 *	                     pointer of its own, which would fire in another thread's slot
 *	mlockall(2)          would lock descry's mappings, and fill them
 *
 * The thread asks the tracer to detach from the process, and waits between leave_wait and
 * leave_end. The tracer, or its watchdog, then moves the thread to the system call
 * (src/load/inproc/undo/undo_leave.c), which the thread makes in the original text. The C library's
 * own threads, fork(2), vfork(2) and posix_spawn(3) pass. */
#include "agent/agent.h"

enum {
	CLONE_VM = 0x100,
	CLONE_VFORK = 0x4000,
	CLONE_THREAD = 0x10000,
	CLONE_SETTLS = 0x80000,
	CLONE_PARENT_SETTID = 0x100000,
	CLONE_CHILD_SETTID = 0x1000000,
	MCL_ALL = 7,
};

/* The part of <linux/sched.h>'s struct clone_args that exists since Linux 5.3. */
struct clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

/* clang-format off */
/* The words on the stack are those of struct wire_leaving. It waits at most 3 s: a tracer that is
 * stopped does not detach. */
__asm__(".text\n"
#define WAIT(skip, args) \
	"	push %rax\n	push %rcx\n	push %rdx\n	push %rsi\n	push %rdi\n" \
	"	push %r8\n	push %r9\n	push %r10\n	push %r11\n" \
	"	push $" #skip "\n" \
	args \
	"	jmp 3f\n"
	/* Called by a stub of kind MID, which has the red zone below its call. */
	".globl agent_clone_site\n.hidden agent_clone_site\n.type agent_clone_site, @function\n"
	"agent_clone_site:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	cmp $56, %eax\n"               /* clone */
	"	je 1f\n"
	"	cmp $435, %eax\n"              /* clone3 */
	"	je 1f\n"
	"	cmp $151, %eax\n"              /* mlockall */
	"	je 1f\n"
	"	popfq\n"
	"	ret\n"
	"1:\n"
	WAIT(128,
	"	mov %r8, %r9\n	mov %r10, %r8\n	mov %rdx, %rcx\n	mov %rsi, %rdx\n"
	"	mov %rdi, %rsi\n	mov %eax, %edi\n")
	".size agent_clone_site, . - agent_clone_site\n"
	/* agent_syscall_entry goes on here, at the C library's syscall(number, ...). */
	".globl agent_clone_entry\n.hidden agent_clone_entry\n.type agent_clone_entry, @function\n"
	"agent_clone_entry:\n"
	"	pushfq\n"
	"	cmp $56, %edi\n"
	"	je 1f\n"
	"	cmp $435, %edi\n"
	"	je 1f\n"
	"	cmp $151, %edi\n"
	"	je 1f\n"
	"	popfq\n"
	"	ret\n"
	"1:\n"
	WAIT(0, "")
	"3:	push $3000\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	cld\n"
	"	call before_clone\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	test %eax, %eax\n"
	"	je agent_leave_end\n"
	".globl agent_leave_wait\n.hidden agent_leave_wait\n"
	"agent_leave_wait:\n"
	"	mov $35, %eax\n"               /* nanosleep */
	"	lea 5f(%rip), %rdi\n"
	"	xor %esi, %esi\n"
	"	syscall\n"
	"	decq (%rsp)\n"
	"	jnz agent_leave_wait\n"
	".globl agent_leave_end\n.hidden agent_leave_end\n"
	"agent_leave_end:\n"
	"	lea 16(%rsp), %rsp\n"
	"	pop %r11\n	pop %r10\n	pop %r9\n	pop %r8\n	pop %rdi\n	pop %rsi\n"
	"	pop %rdx\n	pop %rcx\n	pop %rax\n"
	"	popfq\n"
	"	ret\n"
	"	.balign 8\n"
	"5:	.quad 0, 1000000\n"            /* 1 ms */
	);
/* clang-format on */

/* Reads memory of the program at an address that the kernel has not checked yet. */
static bool read_word(uint64_t addr, uint64_t *ret)
{
	struct wire_range r;

	if (quiet() ? !find_range(process(self()), addr, &r) || r.hi - addr < 8 : !probe_word(addr))
		return false;
	*ret = *(const any64 *)addr;
	return true;
}

/* Returns true when a thread with this thread pointer has a word that distinguishes it from all
 * others, or none by which it would have another thread's slot. */
static bool is_distinct(const struct clone_args *c)
{
	const struct wire_area *a = area();
	const uint64_t at = c->tls + a->id_disp;
	uint64_t word;

	switch (a->identity) {
	case WIRE_ID_FS32: /* the kernel writes it for the C library's threads */
		if ((c->flags & CLONE_PARENT_SETTID && c->parent_tid == at) ||
		    (c->flags & CLONE_CHILD_SETTID && c->child_tid == at))
			return true;
		return read_word(at, &word) && !(uint32_t)word;
	case WIRE_ID_FS64: return read_word(at, &word) && (!word || word == c->tls);
	default: return c->tls != thread_pointer();
	}
}

static bool read_args(uint64_t from, uint64_t size, struct clone_args *ret)
{
	uint64_t *to = (uint64_t *)ret;

	for (uint32_t i = 0; i < sizeof(*ret) / 8; i++)
		if (size < sizeof(*ret) || !read_word(from + i * 8ull, &to[i]))
			return false; /* the call fails */
	return true;
}

static enum wire_leaves why_leaves(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t ptid,
				   uint64_t ctid, uint64_t tls)
{
	struct clone_args c;

	if (nr == SYS_MLOCKALL)
		return a0 && !(a0 & ~(uint64_t)MCL_ALL) ? WIRE_LEAVES_LOCKS : WIRE_STAYS;
	if (nr == SYS_CLONE3) {
		if (!read_args(a0, a1, &c))
			return WIRE_STAYS;
	} else {
		c.flags = a0;
		c.parent_tid = ptid;
		c.child_tid = ctid;
		c.tls = tls;
	}
	if (!(c.flags & CLONE_VM))
		return WIRE_STAYS;
	if (!(c.flags & CLONE_THREAD))
		return c.flags & CLONE_VFORK ? WIRE_STAYS : WIRE_LEAVES_SHARES;
	return c.flags & CLONE_SETTLS && is_distinct(&c) ? WIRE_STAYS : WIRE_LEAVES_THREAD;
}

/* Returns true when the thread must wait. */
__attribute__((used)) static bool before_clone(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
					       uint64_t a3, uint64_t a4) __asm__("before_clone");
static bool before_clone(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
			 uint64_t a4)
{
	const enum wire_leaves why = why_leaves(nr, a0, a1, a2, a3, a4);

	/* an unfollowed child has nothing of descry's behind this */
	if (!why || (!private()->ready && !forked(own_key())) || private()->off)
		return false;
	__atomic_store_n(&said(self())->leaves, why, __ATOMIC_RELEASE);
	return !quiet();
}
