/* Runs in a forked child that is not followed, right behind fork(2). Such a child has no shared
 * memory, because the kernel does not copy that mapping. A new firing in the child finds this out
 * first (thread.c). But when a signal handler forks in the middle of a firing, the child returns
 * into that firing. So this file maps empty memory of its own into each such child. */
#include "agent/agent.h"

enum {
	PROT_READ_WRITE = 1 | 2,
	/* private, anonymous, no swap reserved, not in place of another mapping */
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

/* A new thread and a child of vfork(2) also come here. They have all memory of their maker. */
__attribute__((used)) static void behind_fork(void) __asm__("behind_fork");
static void behind_fork(void)
{
	give_memory(base() + WIRE_SHARED);
}
