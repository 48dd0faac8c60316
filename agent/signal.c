/* SIGSEGV, SIGBUS and SIGTRAP. The kernel has the agent's handler. The agent keeps the program's
 * own action, and rt_sigaction(2) shows the program only that one.
 *
 * Always true: the kernel has the program's mask and flags, and the flags that the agent's handler
 * needs. So the kernel makes the frame, blocks signals and changes stacks as the program requested.
 * The agent jumps to the program's handler with the frame that the kernel made.
 */
#include "agent/agent.h"

enum {
	SIGTRAP = 5,
	SIGBUS = 7,
	SIGSEGV = 11,
	SI_KERNEL = 0x80,
	SIG_DFL = 0,
	SIG_IGN = 1,
	SIG_BLOCK = 0,
	SIG_SETMASK = 2,
	MADV_KEEPONFORK = 19,
	MAPERR = 1, /* SEGV_MAPERR: no mapping is there */
	TRAP = 0xcc,
	RDTSC = 0x310f, /* its bytes */
	RDTSC_SIZE = 2,
	SPINS = 1000,
	GUARDS = 1 << WIRE_SIGNAL_SEGV | 1 << WIRE_SIGNAL_BUS,
};

#define SA_NOCLDSTOP 0x00000001ull
#define SA_NOCLDWAIT 0x00000002ull
#define SA_SIGINFO 0x00000004ull
#define SA_EXPOSE_TAGBITS 0x00000800ull
#define SA_RESTORER 0x04000000ull
#define SA_ONSTACK 0x08000000ull
#define SA_RESTART 0x10000000ull
#define SA_NODEFER 0x40000000ull
#define SA_RESETHAND 0x80000000ull
#define SA_KNOWN \
	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_EXPOSE_TAGBITS | SA_RESTORER | SA_ONSTACK | \
	 SA_RESTART | SA_NODEFER | SA_RESETHAND)

struct siginfo {
	int32_t signo, error, code, pad;
	uint64_t addr; /* of a fault */
};
/* The part of the kernel's struct ucontext that the agent uses. */
struct ucontext {
	uint64_t flags, link, stack[3];
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
};

/* clang-format off */
__asm__(".text\n"
	/* Handlers: rdi, rsi, rdx as the kernel passed them. The called function returns the
	 * address to jump to, 0: return from the signal. */
#define HANDLER(name) \
	".globl agent_" #name "\n.hidden agent_" #name "\n.type agent_" #name ", @function\n" \
	"agent_" #name ":\n" \
	"	endbr64\n" \
	"	push %rdi\n	push %rsi\n	push %rdx\n" \
	"	call on_" #name "\n" \
	"	pop %rdx\n	pop %rsi\n	pop %rdi\n" \
	"	test %rax, %rax\n" \
	"	jz 1f\n" \
	"	jmp *%rax\n" \
	"1:	ret\n" \
	".size agent_" #name ", . - agent_" #name "\n"
	HANDLER(segv)
	HANDLER(int3)
	/* Unwinders recognise a signal frame by exactly these bytes. */
	".globl agent_restorer\n.hidden agent_restorer\n.type agent_restorer, @function\n"
	"agent_restorer:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	".size agent_restorer, . - agent_restorer\n"
	/* Called by a stub of kind MID in front of its moved system call. rsp is 128 lower than the
	 * program's. Behind the call are 8 bytes that undo that, then the 2 bytes of the system
	 * call. A system call changes rax, rcx and r11. */
	".globl agent_sigaction_site\n.hidden agent_sigaction_site\n.type agent_sigaction_site, @function\n"
	"agent_sigaction_site:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	cmp $13, %eax\n"
	"	jne 1f\n"
	"	push %rdi\n	push %rsi\n	push %rdx\n	push %r8\n	push %r9\n	push %r10\n	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	cld\n"
	"	mov %r10, %rcx\n"
	"	call agent_sigaction\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n	pop %r10\n	pop %r9\n	pop %r8\n	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	addq $10, 8(%rsp)\n"
	"	popfq\n"
	"	ret $128\n"
	"1:	popfq\n"
	"	ret\n"
	".size agent_sigaction_site, . - agent_sigaction_site\n"
	/* uint64_t r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags */
	".globl agent_go\n.hidden agent_go\n.type agent_go, @function\n"
	"agent_go:\n"
	"	mov %rdi, %rax\n"
	"	push $0x2b\n"                  /* ss */
	"	push 120(%rax)\n"
	"	push 136(%rax)\n"
	"	push $0x33\n"                  /* cs */
	"	push 128(%rax)\n"
	"	mov 0(%rax), %r8\n	mov 8(%rax), %r9\n	mov 16(%rax), %r10\n	mov 24(%rax), %r11\n"
	"	mov 32(%rax), %r12\n	mov 40(%rax), %r13\n	mov 48(%rax), %r14\n	mov 56(%rax), %r15\n"
	"	mov 64(%rax), %rdi\n	mov 72(%rax), %rsi\n	mov 80(%rax), %rbp\n	mov 88(%rax), %rbx\n"
	"	mov 96(%rax), %rdx\n	mov 112(%rax), %rcx\n	mov 104(%rax), %rax\n"
	"	iretq\n"
	".size agent_go, . - agent_go\n");
/* clang-format on */

#define CODE(name) extern const uint8_t name[] __attribute__((visibility("hidden")))
CODE(agent_segv);
CODE(agent_int3);
CODE(agent_restorer);
/* Continues with the registers at ucontext.r8 .. rip, and the flags behind them. Blocked signals
 * stay blocked. */
void agent_go(const uint64_t *regs) __attribute__((visibility("hidden"), noreturn));

/* --- the program's own actions --- */

static int which(uint64_t sig)
{
	return sig == SIGSEGV   ? WIRE_SIGNAL_SEGV
	       : sig == SIGBUS  ? WIRE_SIGNAL_BUS
	       : sig == SIGTRAP ? WIRE_SIGNAL_TRAP
				: -1;
}
static uint64_t number(int i)
{
	return i == WIRE_SIGNAL_SEGV ? SIGSEGV : i == WIRE_SIGNAL_BUS ? SIGBUS : SIGTRAP;
}
static uint64_t ours(int i)
{
	return i == WIRE_SIGNAL_TRAP ? (uintptr_t)agent_int3 : (uintptr_t)agent_segv;
}

static uint64_t signals(void)
{
	return private()->ready ? private()->signals : kept()->signals;
}
static struct wire_sigaction *actions(void)
{
	return private()->ready ? private()->action : kept()->action;
}

/* Copies the actions that the tracer has set in private memory to the page that forked children
 * keep. */
void keep_actions(void)
{
	struct wire_kept *k = kept();

	if (k->signals == private()->signals)
		return;
	mem_copy(k->action, private()->action, sizeof(k->action));
	k->signals = private()->signals;
}

/* Takes the writers' lock. Signals are blocked. Does not wait for a writer that has ended, or that
 * fork() left behind. */
static void lock(uint32_t pid)
{
	uint64_t own = (uint64_t)pid << 32 | (uint32_t)sys2(SYS_GETTID, 0, 0), v;
	uint64_t *word = &kept()->lock;

	for (int i = 0; i < SPINS; i++) {
		v = 0;
		if (__atomic_compare_exchange_n(word, &v, own, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return;
		if ((uint32_t)(v >> 32) != pid ||
		    sys4(SYS_TGKILL, pid, (uint32_t)v, 0, 0) == E_SRCH) {
			if (__atomic_compare_exchange_n(word, &v, own, false, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				return;
		}
		sys2(SYS_SCHED_YIELD, 0, 0);
	}
}
static void unlock(void)
{
	__atomic_store_n(&kept()->lock, 0, __ATOMIC_RELEASE);
}

static void put_action(int i, const struct wire_sigaction *a)
{
	struct wire_kept *k = kept();

	__atomic_fetch_add(&k->sequence, 1, __ATOMIC_ACQ_REL);
	private()->action[i] = *a;
	k->action[i] = *a;
	__atomic_fetch_add(&k->sequence, 1, __ATOMIC_RELEASE);
}
static struct wire_sigaction get_action(int i)
{
	struct wire_sigaction a;
	uint32_t before;

	for (int n = 0; n < SPINS; n++) {
		before = __atomic_load_n(&kept()->sequence, __ATOMIC_ACQUIRE);
		a = actions()[i];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&kept()->sequence, __ATOMIC_RELAXED) == before)
			break;
	}
	return a;
}

static int64_t kernel_action(uint64_t sig, const struct wire_sigaction *act,
			     struct wire_sigaction *old)
{
	return sys4(SYS_RT_SIGACTION, sig, (uintptr_t)act, (uintptr_t)old, 8);
}

/* Returns the action for the kernel when `own` is the program's action. */
static struct wire_sigaction in_front_of(int i, const struct wire_sigaction *own)
{
	struct wire_sigaction a = { .handler = ours(i), .restorer = (uintptr_t)agent_restorer };

	if (own->handler > SIG_IGN) {
		a.flags = own->flags & ~SA_RESETHAND;
		a.mask = own->mask;
		if (own->flags & SA_RESTORER)
			a.restorer = own->restorer;
	}
	a.flags |= SA_SIGINFO | SA_RESTORER;
	return a;
}

bool faults_are_survived(const struct wire_thread *t)
{
	const uint64_t bits = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	struct wire_sigaction a;
	uint64_t mask;

	if (quiet()) /* as the tracer has seen the thread's mask */
		return !is_masked(t) && (signals() & GUARDS) == GUARDS;
	if (sys4(SYS_RT_SIGPROCMASK, SIG_BLOCK, 0, (uintptr_t)&mask, 8) || mask & bits)
		return false;
	return !kernel_action(SIGSEGV, NULL, &a) && a.handler == (uintptr_t)agent_segv &&
	       !kernel_action(SIGBUS, NULL, &a) && a.handler == (uintptr_t)agent_segv;
}

/* --- signals that the agent did not cause --- */

/* Without a system call: runs the instruction again with the signal blocked, and the kernel ends
 * the process as by default. (The signal is not blocked in a handler with SA_NODEFER; then the
 * program has a handler of its own, and this function is not called.) */
static uint64_t fault_again(int i, const struct siginfo *info, const struct ucontext *uc)
{
	if (info->code > 0 && i != WIRE_SIGNAL_TRAP)
		agent_go(&uc->r8);
	*(volatile uint8_t *)~0ull; /* another process has sent it */
	return 0;
}

/* Acts as the default action does: returns to the instruction, which faults again, or sends the
 * signal again (the instruction of a trap has already run, and a signal of another process does not
 * come again). The signal is blocked until the handler returns. */
static uint64_t by_default(int i, const struct siginfo *info, const struct ucontext *uc)
{
	const struct wire_sigaction none = { 0 };
	uint64_t sig = number(i);

	if (quiet())
		return fault_again(i, info, uc);
	kernel_action(sig, &none, NULL);
	if (i == WIRE_SIGNAL_TRAP || info->code <= 0)
		sys4(SYS_RT_TGSIGQUEUEINFO, (uint64_t)sys2(SYS_GETPID, 0, 0),
		     (uint64_t)sys2(SYS_GETTID, 0, 0), sig, (uintptr_t)info);
	return 0;
}

static uint64_t chain(int i, const struct siginfo *info, const struct ucontext *uc)
{
	struct wire_sigaction own = get_action(i), gone;
	bool forced = info->code > 0;

	if (own.handler == SIG_IGN && !forced)
		return 0;
	if (own.handler <= SIG_IGN)
		return by_default(i, info, uc);
	if (own.flags & SA_RESETHAND) {
		gone = own;
		gone.handler = SIG_DFL;
		put_action(i, &gone);
	}
	return own.handler;
}

/* --- signals of the agent --- */

/* The strict mode of seccomp(2) also forbids the time stamp counter. Returns the count of the
 * tracer's last heartbeat instead. A process that has switched the counter off by prctl(2) may
 * still make system calls: there, the count of the clock. */
static void count_for(struct ucontext *uc)
{
	const struct wire_clock *c = &area()->clock;
	const bool by_clock = __atomic_load_n(&kept()->no_counter, __ATOMIC_RELAXED);
	uint64_t ns = (by_clock ? now_ns()
				: __atomic_load_n(&area()->heartbeat, __ATOMIC_RELAXED)) -
		      c->base_ns,
		 count = 0, rest = ns;

	if (ns < c->mult)
		__asm__("divq %2" : "+a"(count), "+d"(rest) : "r"(c->mult) : "cc");
	uc->rax = (uint32_t)count;
	uc->rdx = count >> 32;
	uc->rip += RDTSC_SIZE;
}

ENTRY uint64_t on_segv(uint64_t sig, const struct siginfo *info, struct ucontext *uc)
{
	int i = which(sig);

	if (i < 0)
		return 0;
	if (info->code > 0 && uc->rip - base() < WIRE_CODE_SIZE) {
		if (*(const uint16_t *)uc->rip == RDTSC) {
			count_for(uc);
			return 0;
		}
		if (*(const any32 *)(uc->rip - 8) == WIRE_SURVIVED) {
			uc->rip += (uint64_t)(int32_t) * (const any32 *)(uc->rip - 4);
			return 0;
		}
		for (const struct fixup *f = fixups; f < fixups_end; f++) {
			if ((uintptr_t)&f->at + (uint64_t)(int64_t)f->at == uc->rip) {
				uc->rip = (uintptr_t)&f->to + (uint64_t)(int64_t)f->to;
				return 0;
			}
		}
		if (i == WIRE_SIGNAL_SEGV && info->code == MAPERR && give_memory(info->addr))
			return 0;
	}
	return chain(i, info, uc);
}

/* Handles a trap of descry's: continues in its stub. When the trap was removed a moment ago, the
 * instruction is there again, and runs. */
ENTRY uint64_t on_int3(uint64_t sig, const struct siginfo *info, struct ucontext *uc)
{
	const struct wire_trap *traps = (const struct wire_trap *)kept()->traps;
	uint64_t lo = 0, hi = traps ? kept()->ntraps : 0, site = uc->rip - 1;
	uint8_t byte;

	if (info->code != SI_KERNEL)
		return chain(WIRE_SIGNAL_TRAP, info, uc);
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (traps[mid].site == site) {
			uc->rip = traps[mid].code;
			return 0;
		}
		if (site < traps[mid].site)
			hi = mid;
		else
			lo = mid + 1;
	}
	LOAD(8, site, byte, bad);
	if (byte == TRAP || byte == 3) /* 3: second byte of the two-byte form */
		return chain(WIRE_SIGNAL_TRAP, info, uc);
	uc->rip = site;
	return 0;
bad:
	return chain(WIRE_SIGNAL_TRAP, info, uc);
}

/* --- rt_sigaction(2) of the program --- */

/* Makes only the one system call that the program makes. A bad pointer faults, and the agent's
 * handler turns this into EFAULT. */
static int64_t quiet_sigaction(int i, const struct wire_sigaction *act, struct wire_sigaction *oact)
{
	struct wire_sigaction new = { 0 }, old = get_action(i), front;
	const uint64_t *from = (const uint64_t *)act;
	uint64_t *to = (uint64_t *)&new;
	int64_t r;

	for (uint32_t k = 0; act && k < sizeof(new) / 8; k++)
		LOAD(64, from + k, to[k], bad);
	new.flags &= SA_KNOWN;
	new.mask &= ~(1ull << 8 | 1ull << 18); /* SIGKILL, SIGSTOP */
	front = in_front_of(i, &new);
	if (act)
		put_action(i, &new);
	r = kernel_action(number(i), act ? &front : NULL, oact);
	if (r && act)
		put_action(i, &old);
	if (!r && oact)
		*oact = old;
	return r;
bad:
	return E_FAULT;
}

ENTRY int64_t agent_sigaction(uint64_t sig, const struct wire_sigaction *act,
			      struct wire_sigaction *oact, uint64_t size)
{
	struct wire_sigaction new = { 0 }, old, front;
	int i = which(sig);
	uint64_t mask, all = ~0ull;
	uint32_t pid;
	int64_t r;

	if (i < 0 || size != 8 || !(signals() >> i & 1))
		return sys4(SYS_RT_SIGACTION, sig, (uintptr_t)act, (uintptr_t)oact, size);
	if (quiet())
		return quiet_sigaction(i, act, oact);
	pid = (uint32_t)sys2(SYS_GETPID, 0, 0);
	if (act) {
		if (!probe_word((uintptr_t)act) || !probe_word((uintptr_t)act + 24))
			return E_FAULT;
		new = *act;
		new.flags &= SA_KNOWN;
		new.mask &= ~(1ull << 8 | 1ull << 18); /* SIGKILL, SIGSTOP */
	}
	if (in_vfork(pid)) {
		/* A vfork() child has its parent's memory but actions of its own, and will soon
		 * exec or exit. */
		r = kernel_action(sig, NULL, &old);
		if (!r && old.handler == ours(i))
			old = get_action(i);
		if (!r && act)
			r = kernel_action(sig, &new, NULL);
	} else if (!act) {
		old = get_action(i);
		r = 0;
	} else {
		sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK, (uintptr_t)&all, (uintptr_t)&mask, 8);
		lock(pid);
		old = get_action(i);
		put_action(i, &new);
		front = in_front_of(i, &new);
		r = kernel_action(sig, &front, NULL);
		unlock();
		sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK, (uintptr_t)&mask, 0, 8);
	}
	if (r || !oact)
		return r;
	r = kernel_action(sig, NULL, oact); /* the kernel checks that it can be written */
	if (!r)
		*oact = old;
	return r;
}

/* --- installing and removing handlers --- */

static int64_t take_out(int i)
{
	struct wire_sigaction cur, own = get_action(i);
	int64_t r = kernel_action(number(i), NULL, &cur);

	if (!r && cur.handler == ours(i))
		r = kernel_action(number(i), &own, NULL);
	return r;
}

void restore_handlers(void)
{
	for (int i = 0; i < WIRE_SIGNALS; i++)
		if (signals() >> i & 1)
			take_out(i);
	private()->signals = kept()->signals = 0;
}

ENTRY int64_t agent_guard(uint64_t on)
{
	struct wire_kept *k = kept();
	uint64_t have = private()->signals;
	struct wire_sigaction cur, front;
	int64_t r = 0, failed = 0;

	sys4(SYS_MADVISE, (uintptr_t)k, PAGE, MADV_KEEPONFORK,
	     0); /* even if the surrounding memory has other settings */
	for (int i = 0; i < WIRE_SIGNALS; i++) {
		uint64_t bit = 1ull << i;

		if ((on ^ have) & on & bit) {
			r = kernel_action(number(i), NULL, &cur);
			if (!r && cur.handler != ours(i)) {
				put_action(i, &cur);
				front = in_front_of(i, &cur);
				r = kernel_action(number(i), &front, NULL);
			}
			if (!r)
				have |= bit;
		} else if (~on & have & bit) {
			r = take_out(i);
			have &= ~bit;
		}
		failed = r ? r : failed;
	}
	private()->signals = k->signals = have;
	return failed;
}
