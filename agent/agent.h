/* The agent: what runs inside a traced process, called by stubs, thunks and compiled programs.
 *
 * In: wire/inproc.h, which has the list of entries (WIRE_AGENT_ENTRIES); each is agent_NAME here.
 * Out: a flat blob that runs wherever it is mapped.
 * Always true: no C library, no writable data of its own (all state is in the shared and the
 * private mapping; the facts are read only), no vector registers, no allocation, no lock that is
 * waited for without end, `errno` and everything else of the process left alone. Stack frames are
 * small: a program's thread may have little left.
 *
 *	head.c    the head: offsets of the entries
 *	map.h     maps              ring.h   rings           both used by the tracer too
 *	memory.h  bytes moved       sys.h    system calls
 *	call.c    helpers: maps, rings, clock, ids, signals to itself
 *	native.h  BPF's helpers, for routines of bpf/    routine.c  those: d_ustack, d_stack_id
 *	read.c    memory of the process, read without ever faulting; stacks by frame pointers
 *	thread.c  thread slots: found, claimed, given back; nesting; forked children
 *	signal.c  SIGSEGV, SIGBUS and SIGTRAP, the process's own handlers behind ours
 *	heal.c    a forked child gets its text back
 *	own.c     reads that lead to our own memory only
 *	fork.c    a forked child without shared memory
 *	seccomp.c filters of system calls, before they are put in
 *	event.c   what the process does, as the kernel's tracepoints tell it
 */
#ifndef DESCRY_AGENT_AGENT_H
#define DESCRY_AGENT_AGENT_H

#include "agent/memory.h"
#include "agent/sys.h"
#include "wire/inproc.h"

enum { PAGE = 4096 };

#define ENTRY __attribute__((visibility("hidden"), used))

/* The head stands at the start of the code mapping, wherever that is. */
extern const struct wire_agent_head agent_head __attribute__((visibility("hidden")));

static inline uint64_t base(void)
{
	return (uintptr_t)&agent_head;
}
static inline const struct wire_area *area(void)
{
	return (const struct wire_area *)(base() + WIRE_FACTS);
}
static inline struct wire_common *common(void)
{
	return (struct wire_common *)(base() + WIRE_SHARED);
}
static inline struct wire_private *private(void)
{
	return (struct wire_private *)(base() + WIRE_PRIVATE);
}
static inline struct wire_kept *kept(void)
{
	return (struct wire_kept *)(base() + WIRE_PRIVATE + WIRE_KEPT);
}
/* No system calls: seccomp(2) filters them. */
static inline bool quiet(void)
{
	return __atomic_load_n(&kept()->quiet, __ATOMIC_RELAXED);
}
/* System calls as sys.h has them, E_PERM where there are to be none. */
static inline int64_t try6(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			   uint64_t f)
{
	return quiet() ? E_PERM : sys6(nr, a, b, c, d, e, f);
}
static inline int64_t try4(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return quiet() ? E_PERM : sys4(nr, a, b, c, d);
}
static inline int64_t try2(long nr, uint64_t a, uint64_t b)
{
	return try4(nr, a, b, 0, 0);
}
static inline const struct wire_process *process(uint32_t i)
{
	return (const struct wire_process *)area()->processes + (i < WIRE_PROCESSES_MAX ? i : 0);
}
static inline struct wire_said *said(uint32_t i)
{
	return (struct wire_said *)area()->said + (i < WIRE_PROCESSES_MAX ? i : 0);
}
/* This process's number in those lists. */
static inline uint32_t self(void)
{
	return private()->process;
}
/* What this process calls itself; 0 not known. A forked child knows it: what the tracer has of it
 * is from shared memory. */
static inline uint32_t own_pid(void)
{
	return private()->pid ?: process(self())->own_pid;
}
static inline struct wire_thread *slot(uint32_t i)
{
	return (struct wire_thread *)(area()->threads + i * area()->thread_stride);
}

static inline struct wire_own *own_words(const struct wire_thread *t)
{
	return (struct wire_own *)(((uintptr_t)t >> area()->stack_shift) + area()->stacks);
}
/* The stack pointer of the running firing's thunk. */
static inline uint64_t fired_at(const struct wire_own *o)
{
	return ((const struct wire_thread_entry *)o->entry)->rsp;
}
/* The tracepoint that the thread fires, and stand-ins of task_structs: the thread's own, and
 * another's. */
static inline struct wire_event *event_of(const struct wire_thread *t)
{
	return (struct wire_event *)(area()->together ? (uintptr_t)own_words(t) - WIRE_EVENT_BELOW
						      : (uintptr_t)t + area()->event_at);
}
/* The slot's number. wire_thread.slot has it, too, but others write there. */
static inline uint32_t slot_number(const struct wire_thread *t)
{
	return (uint32_t)(((uintptr_t)t - area()->threads) >>
			  __builtin_ctzll(area()->thread_stride));
}

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))

/* Sources where a fault is survived. `.fixups` is a table of such instructions and where they go on
 * (signal.c). The address is loaded or the function goes on at `bad`. */
#define LOAD(size, addr, dst, bad) \
	__asm__ goto("1: mov %1, %0\n\t" \
		     ".pushsection .fixups,\"a\",@progbits\n\t" \
		     ".long 1b - ., %l2 - .\n\t" \
		     ".popsection" \
		     : "=r"(dst) \
		     : "m"(*(const any##size *)(addr)) \
		     : \
		     : bad)

struct fixup {
	int32_t at, to; /* each from its own address */
};
extern const struct fixup fixups[] __attribute__((visibility("hidden"))),
	fixups_end[] __attribute__((visibility("hidden")));

/* --- between the files --- */

/* Is [p, p + n) the program's own: facts and shared memory, its probe stack, or the piece of the
 * thread's stack it runs on? */
static inline bool is_own(const struct wire_thread *t, uint64_t p, uint64_t n)
{
	const struct wire_area *a = area();
	uint64_t off = p - (uintptr_t)a, rsp;
	const struct wire_own *o;

	if (LIKELY(off < a->span))
		return n <= a->span - off;
	o = own_words(t); /* above its probe stack */
	off = p - ((uintptr_t)o - WIRE_PROBE_STACK);
	if (LIKELY(off < WIRE_PROBE_STACK))
		return n <= WIRE_PROBE_STACK - off;
	off = p - (uintptr_t)__builtin_frame_address(0);
	rsp = fired_at(o);
	return rsp > (uintptr_t)__builtin_frame_address(0) &&
	       off < rsp - (uintptr_t)__builtin_frame_address(0) && n <= rsp - p;
}
/* Does the tracer run, and no traced process? Slot 0 is its own. Addresses that D programs follow
 * there may come from anybody: they read facts and shared memory, and nothing else. */
static inline bool is_tracer(const struct wire_thread *t)
{
	return (uintptr_t)t == area()->threads;
}
/* A helper was given an address that is not. */
static inline int64_t refuse(struct wire_thread *t)
{
	t->violations++;
	t->violation = ~0ull;
	return E_FAULT;
}

void *map_value(const struct wire_map *m, struct wire_thread *t,
		const void *key); /* call.c: map_lookup() */
uint64_t now_ns(void);            /* call.c: CLOCK_MONOTONIC */
void check_heartbeat(void);       /* thread.c */
bool slot_is_dead(uint32_t i);    /* thread.c: the thread that has it is no more */
/* thread.c: has the tracer seen that it blocks SIGSEGV or SIGBUS? */
bool is_masked(const struct wire_thread *t);
void look_around(struct wire_thread *t, uint64_t rsp); /* thread.c: where its stacks are */
bool faults_are_survived(
	const struct wire_thread *t); /* signal.c: our handlers are the ones, and not blocked */
void restore_handlers(void); /* signal.c: in a forked child, when its text is its own again */
/* fork.c: is that where a forked child has lost the shared memory, and has it got its own there? */
bool give_memory(uint64_t addr);
bool probe_word(uint64_t addr); /* read.c: are 8 bytes there? By a system call */
bool find_range(const struct wire_process *p, uint64_t addr, struct wire_range *ret); /* read.c */
/* thread.c: is that not the process whose memory this is, but a vfork() child in it? */
bool in_vfork(uint32_t pid);
void keep_actions(void); /* signal.c: for forked children */
uint64_t agent_heal(void);
int64_t agent_guard(uint64_t on);
int64_t agent_probe_read(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			 struct wire_thread *t);
int64_t agent_probe_read_str(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			     struct wire_thread *t);
void own_task(struct wire_thread *t); /* event.c: wire_own.task */
/* thread.c: of a process that makes no system calls, and is new: 0 when its number cannot be
 * known. */
uint32_t quiet_tid(uint64_t key);
struct wire_thread *agent_thread(uint64_t key);
bool forked(uint64_t key);              /* thread.c: is the child traced? */
struct wire_thread *find(uint64_t key); /* thread.c: in the process's table */
void ask_name(struct wire_thread *t);   /* thread.c: wire_thread.comm */
uint64_t thread_pointer(void);          /* thread.c; 0 not known */

#endif
