/* Signal handlers of a traced program, for tests of the agent's blob. */
#ifndef DESCRY_TEST_AGENT_HANDLERS_H
#define DESCRY_TEST_AGENT_HANDLERS_H

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "agent_child.h"

static siginfo_t got;
static ucontext_t got_context;
static int got_signal;
static uint64_t got_blocked, got_stack;
static sigjmp_buf back;

static inline uint64_t blocked(void)
{
	uint64_t m = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, 8);
	return m;
}
static inline void handler3(int sig, siginfo_t *info, void *uc)
{
	got_signal = sig;
	got = *info;
	got_context = *(ucontext_t *)uc;
	got_blocked = blocked();
	got_stack = (uintptr_t)__builtin_frame_address(0);
	siglongjmp(back, 1);
}
static inline void handler1(int sig)
{
	got_signal = sig;
}

/* rt_sigaction(2) as the program would see it. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};
static inline int64_t program_action(int sig, const struct kernel_action *act,
				     struct kernel_action *old)
{
	return (int64_t)CALL(sigaction, sig, act, old, 8);
}
extern void restorer(void);
__asm__(".text\nrestorer:\n\tmov $15, %rax\n\tsyscall\n");
static inline struct kernel_action action(void *handler, uint64_t flags, uint64_t mask)
{
	return (struct kernel_action){ (uintptr_t)handler, flags | 0x04000000, (uintptr_t)restorer,
				       mask };
}

static inline void die_of_fault(void)
{
	*(volatile int *)8 = 1;
}

#endif
