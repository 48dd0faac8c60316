/* Handles a seccomp filter that the program is about to install. From then on no thread of the
 * process makes system calls of the agent, because the filter may end the process at an unexpected
 * one. Syscall User Dispatch counts as a filter: it hands unexpected calls to a handler of the
 * program's, which takes them for those of the foreign program that it runs (Wine). The agent then
 * uses facts from before (a thread's name, its signal stack), a word of the thread (its id), or the
 * tracer's lists. */
#include "agent/agent.h"

enum {
	PR_SET_SECCOMP = 22,
	SET_MODE_FILTER = 1, /* and 0, the strict mode of seccomp(2) */
	MODE_STRICT = 1,     /* of prctl(2) */
	TSYNC = 1,
	PR_SET_NAME = 15,
	PR_SET_TSC = 26,
	PR_TSC_SIGSEGV = 2,
	PR_SET_SYSCALL_USER_DISPATCH = 59, /* arg 0 switches it off */
	/* time limit for other threads: more than the time that they wait for the tracer */
	WAIT_NS = 250000000,
};

/* clang-format off */
__asm__(".text\n"
#define CALL_C \
	"	mov %rsp, %rbp\n" \
	"	and $-16, %rsp\n" \
	"	cld\n" \
	"	call before_filter\n" \
	"	mov %rbp, %rsp\n"
	/* Like agent_sigaction_site, but the system call is made. */
	".globl agent_seccomp_site\n.hidden agent_seccomp_site\n.type agent_seccomp_site, @function\n"
	"agent_seccomp_site:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	cmp $157, %eax\n"              /* prctl */
	"	je 1f\n"
	"	cmp $317, %eax\n"              /* seccomp */
	"	jne 2f\n"
	"1:	push %rax\n	push %rdi\n	push %rsi\n	push %rdx\n	push %r8\n	push %r9\n"
	"	push %r10\n	push %rbp\n"
	"	mov %rdx, %rcx\n"
	"	mov %rsi, %rdx\n"
	"	mov %edi, %esi\n"
	"	mov %eax, %edi\n"
	CALL_C
	"	pop %rbp\n	pop %r10\n	pop %r9\n	pop %r8\n	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	pop %rax\n"
	"2:	popfq\n"
	"	ret\n"
	".size agent_seccomp_site, . - agent_seccomp_site\n"
	/* Called by a stub of kind ENTRY, at the C library's prctl(op, arg, filter) and
	 * syscall(number, op, arg, filter). */
	".globl agent_prctl_entry\n.hidden agent_prctl_entry\n.type agent_prctl_entry, @function\n"
	"agent_prctl_entry:\n"
	"	endbr64\n"
	"	push %rax\n	push %rdi\n	push %rsi\n	push %rdx\n	push %rcx\n"
	"	mov %rdx, %rcx\n"
	"	mov %rsi, %rdx\n"
	"	mov %edi, %esi\n"
	"	mov $157, %edi\n"
	"	jmp 3f\n"
	".size agent_prctl_entry, . - agent_prctl_entry\n"
	".globl agent_syscall_entry\n.hidden agent_syscall_entry\n.type agent_syscall_entry, @function\n"
	"agent_syscall_entry:\n"
	"	endbr64\n"
	"	cmp $157, %edi\n"
	"	je 1f\n"
	"	cmp $317, %edi\n"
	"	jne agent_clone_entry\n"
	"1:	push %rax\n	push %rdi\n	push %rsi\n	push %rdx\n	push %rcx\n"
	"3:	push %r8\n	push %r9\n	push %rbp\n"
	CALL_C
	"	pop %rbp\n	pop %r9\n	pop %r8\n	pop %rcx\n	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	pop %rax\n"
	"	ret\n"
	".size agent_syscall_entry, . - agent_syscall_entry\n");
/* clang-format on */

uint64_t own_key(void)
{
	const struct wire_area *a = area();
	uint64_t fs = thread_pointer();

	if (!fs)
		return 0;
	switch (a->identity) {
	case WIRE_ID_FS32: return *(const any32 *)(fs + a->id_disp);
	case WIRE_ID_FS64: return *(const any64 *)(fs + a->id_disp);
	default: return fs;
	}
}

static bool in_firing(const struct wire_own *o)
{
	return __atomic_load_n(&o->holder, __ATOMIC_ACQUIRE) && o->entry &&
	       (int64_t)__atomic_load_n(&((const struct wire_thread_entry *)o->entry)->rsp,
					__ATOMIC_ACQUIRE) > 0;
}
/* Waits until no other thread is in a firing, because the filter will hold for those threads as
 * well. Gives up after WAIT_NS: longjmp() may have left a firing open. */
static void wait_for_others(const struct wire_thread *caller)
{
	uint64_t end = now_ns() + WAIT_NS;

	for (uint32_t i = 0; i < area()->nthreads; i++) {
		const struct wire_thread *t = slot(i);

		while (t != caller && in_firing(own_words(t)) && now_ns() < end)
			sys2(SYS_SCHED_YIELD, 0, 0);
	}
	while ((int32_t)__atomic_load_n(&kept()->busy, __ATOMIC_ACQUIRE) > 0 && now_ns() < end)
		sys2(SYS_SCHED_YIELD, 0, 0);
}

/* Keeps the thread's name, which cannot be queried later. */
static void rename_thread(uint64_t name)
{
	const uint64_t key = own_key();
	struct wire_thread *t = private()->ready && key ? find(key) : NULL;
	const char *from = (const char *)name;
	struct wire_range r;

	if (!t || !find_range(process(private()->process), name, &r))
		return; /* the tracer finds it a moment later */
	mem_zero(t->comm, sizeof(t->comm));
	for (uint32_t i = 0; i < sizeof(t->comm) - 1 && name + i < r.hi && from[i]; i++)
		t->comm[i] = from[i];
}

/* Returns true for a call that installs a filter. Programs that only check for support pass
 * none. */
static bool puts_in(uint32_t nr, uint32_t op, uint64_t arg, uint64_t filter, bool *ret_strict)
{
	if (nr != SYS_SECCOMP && op == PR_SET_SYSCALL_USER_DISPATCH)
		return arg;
	if (nr == SYS_SECCOMP ? op > SET_MODE_FILTER : op != PR_SET_SECCOMP)
		return false;
	*ret_strict = nr == SYS_SECCOMP ? op != SET_MODE_FILTER : arg == MODE_STRICT;
	return *ret_strict || filter;
}

__attribute__((used)) static void before_filter(uint32_t nr, uint32_t op, uint64_t arg,
						uint64_t filter) __asm__("before_filter");
static void before_filter(uint32_t nr, uint32_t op, uint64_t arg, uint64_t filter)
{
	struct wire_thread *t;
	bool strict = false;
	uint64_t key;

	if (nr != SYS_SECCOMP && op == PR_SET_NAME && quiet())
		rename_thread(arg);
	if (nr != SYS_SECCOMP && op == PR_SET_TSC && arg == PR_TSC_SIGSEGV && !quiet()) {
		/* the handler replaces it in programs; signals are blocked in parts of the agent */
		__atomic_store_n(&kept()->no_counter, 1, __ATOMIC_SEQ_CST);
		agent_guard(private()->signals | 1 << WIRE_SIGNAL_SEGV);
	}
	if (quiet() || !puts_in(nr, op, arg, filter, &strict))
		return;
	key = own_key();
	t = agent_thread(key);
	if (t && !t->vforked) {
		look_around(t, (uintptr_t)__builtin_frame_address(0));
		ask_name(t);
		mem_copy(kept()->comm, t->comm, sizeof(t->comm));
	}
	if (strict) /* for the time stamp counter: rt_sigaction(2) is forbidden from then on */
		agent_guard(private()->signals | 1 << WIRE_SIGNAL_SEGV);
	__atomic_store_n(&kept()->quiet, 1, __ATOMIC_SEQ_CST);
	if (private()->ready && !private()->off)
		__atomic_store_n(&said(private()->process)->quiet, 1, __ATOMIC_RELEASE);
	if (nr == SYS_SECCOMP && op == SET_MODE_FILTER && arg & TSYNC)
		wait_for_others(t);
}
