/* A forked child that nobody follows, right behind fork(2). It has no shared memory: the kernel
 * does not copy that mapping. What begins in the child finds that out first (thread.c). But a child
 * that a signal handler forks in the middle of a firing comes back to that firing when the handler
 * returns. So each such child gets memory of its own there, which is empty and leads to nothing. */
#include "agent/agent.h"

enum {
	PROT_READ_WRITE = 1 | 2,
	/* private, anonymous, no room reserved, in no other mapping's place */
	MAP_OWN = 0x2 | 0x20 | 0x4000 | 0x100000,
};

/* clang-format off */
__asm__(".text\n"
	/* Called by a stub of kind MID behind a system call that may have made a process. */
	".globl agent_fork_site\n.hidden agent_fork_site\n.type agent_fork_site, @function\n"
	"agent_fork_site:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	test %rax, %rax\n"
	"	jne 1f\n"                      /* the parent */
	"	push %rax\n	push %rcx\n	push %rdx\n	push %rsi\n	push %rdi\n	push %r8\n"
	"	push %r9\n	push %r10\n	push %r11\n	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	cld\n"
	"	call behind_fork\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n	pop %r11\n	pop %r10\n	pop %r9\n	pop %r8\n	pop %rdi\n"
	"	pop %rsi\n	pop %rdx\n	pop %rcx\n	pop %rax\n"
	"1:	popfq\n"
	"	ret\n"
	".size agent_fork_site, . - agent_fork_site\n");
/* clang-format on */

bool give_memory(uint64_t addr)
{
	const uint64_t shared = base() + WIRE_SHARED, size = area()->shared_size;

	return addr - shared < size && !area()->follow && !private()->process && !quiet() &&
	       sys6(SYS_MMAP, shared, size, PROT_READ_WRITE, MAP_OWN, ~0ull, 0) == (int64_t)shared;
}

/* Here also come a new thread and a child of vfork(2), which have all their maker's memory. */
__attribute__((used)) static void behind_fork(void) __asm__("behind_fork");
static void behind_fork(void)
{
	give_memory(base() + WIRE_SHARED);
}
