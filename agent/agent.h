/* The agent: the code of descry inside a traced process, which stubs, thunks and compiled programs
 * call.
 *
 * In: wire/inproc.h, which lists the entries (WIRE_AGENT_ENTRIES); each is agent_NAME here. Out: a
 * flat blob that runs at any address. Always true: the agent uses no C library and no vector
 * registers. It has no writable data of its own: all state is in the shared and the private
 * mapping, and it only reads the facts. It allocates nothing. Every wait for a lock has an end. It
 * does not change `errno` or other state of the process. Its stack frames are small, because a
 * program's thread may have little stack left.
 *
 *	head.c    the head: offsets of the entries
 *	map.h     maps              ring.h   rings           the tracer uses both too
 *	memory.h  copies of bytes   sys.h    system calls
 *	agent_call.c    helpers: maps, rings, clock, ids, signals to the process itself
 *	native.h  BPF's helpers, for routines of bpf/    routine.c  these routines: d_ustack, d_stack_id
 *	key.c     finds entries of aggregations by a text that is known
 *	read.c    reads the process's memory without a fault; walks stacks by frame pointers
 *	thread.c  finds, claims and frees thread slots; nesting; forked children
 *	signal.c  SIGSEGV, SIGBUS and SIGTRAP, in front of the process's own handlers
 *	agent_heal.c    restores the text of a forked child
 *	own.c     reads of descry's own memory only
 *	fork.c    gives memory to a forked child without shared memory
 *	agent_seccomp.c handles filters of system calls before they are installed
 *	agent_clone.c   waits for the tracer to detach before a call that it cannot follow
 *	agent_event.c   makes the contexts of the kernel's tracepoints for events of the process
 */
#ifndef DESCRY_AGENT_AGENT_H
#define DESCRY_AGENT_AGENT_H

#include "agent/memory.h"
#include "agent/sys.h"
#include "wire/inproc.h"

enum { PAGE = 4096 };

#define ENTRY __attribute__((visibility("hidden"), used))

/* The head stands at the start of the code mapping, at any address. */
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
/* Returns true when the agent makes no system calls, because seccomp(2) filters them. */
static inline bool quiet(void)
{
	return __atomic_load_n(&kept()->quiet, __ATOMIC_RELAXED);
}
/* Make system calls as sys.h does, or return E_PERM when the agent makes none. */
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
/* Returns this process's index in those lists. */
static inline uint32_t self(void)
{
	return private()->process;
}
/* Returns this process's number in its own pid namespace, 0: not known. A forked child keeps its
 * number in private memory, because the tracer has it only from shared memory. */
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
/* Returns the private memory of wire_area.event and of WIRE_MAP_OWN_TASK. */
static inline uint64_t own_room(const struct wire_thread *t)
{
	return (uintptr_t)own_words(t) - WIRE_EVENT_BELOW;
}
/* own.c: returns the thread's value of a map of task storage; NULL: it is another kind of map. */
uint8_t *task_value(const struct wire_thread *t, const struct wire_map *m);
/* Returns the stack pointer of the running firing's thunk. */
static inline uint64_t fired_at(const struct wire_own *o)
{
	return ((const struct wire_thread_entry *)o->entry)->rsp;
}
/* Returns the arguments of the tracepoint that the thread fires, followed by stand-ins of
 * task_structs: the thread's own, and another's. */
static inline struct wire_event *event_of(const struct wire_thread *t)
{
	return (struct wire_event *)(area()->together ? own_room(t)
						      : (uintptr_t)t + area()->event_at);
}
/* Returns the slot's number. Does not use wire_thread.slot, because other processes may write
 * it. */
static inline uint32_t slot_number(const struct wire_thread *t)
{
	return (uint32_t)(((uintptr_t)t - area()->threads) >>
			  __builtin_ctzll(area()->thread_stride));
}

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))

/* A load that survives a fault. `.fixups` is a table of such instructions and the places where
 * execution continues after a fault (signal.c). Either the load succeeds, or the function continues
 * at `bad`. dst has no value yet: gcc 12 drops a branch in which the load gives a variable another
 * value than outside of the branch. */
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
	int32_t at, to; /* each relative to its own address */
};
extern const struct fixup fixups[] __attribute__((visibility("hidden"))),
	fixups_end[] __attribute__((visibility("hidden")));

/* --- shared by the files --- */

/* own.c: the rest of is_own(). frame: the address of the calling function's frame. */
bool is_own_far(const struct wire_thread *t, uint64_t p, uint64_t n, uint64_t frame);
/* Returns true when [p, p + n) is the program's own memory: facts and shared memory, its probe
 * stack, the thread's variables, or its part of the thread's stack. */
static inline bool is_own(const struct wire_thread *t, uint64_t p, uint64_t n)
{
	const struct wire_area *a = area();
	uint64_t off = p - (uintptr_t)a;

	if (LIKELY(off < a->span))
		return n <= a->span - off;
	off = p - ((uintptr_t)own_words(t) - WIRE_PROBE_STACK); /* above it */
	if (LIKELY(off < WIRE_PROBE_STACK))
		return n <= WIRE_PROBE_STACK - off;
	return is_own_far(t, p, n, (uintptr_t)__builtin_frame_address(0));
}
/* Returns true in the tracer, which owns slot 0. The addresses that D programs follow there may
 * come from any process, so programs there read facts and shared memory only. */
static inline bool is_tracer(const struct wire_thread *t)
{
	return (uintptr_t)t == area()->threads;
}
/* Refuses an address that is not the program's own. */
static inline int64_t refuse(struct wire_thread *t)
{
	t->violations++;
	t->violation = ~0ull;
	return E_FAULT;
}

/* Returns true when the thread is on its signal stack. The program runs on a stack of its own, so
 * the kernel would put the frame of a fault at the top of the signal stack, over the data of a
 * handler there. */
static inline bool on_signal_stack(const struct wire_own *o)
{
	const uint64_t rsp = fired_at(o);

	return rsp - o->alt_lo < o->alt_hi - o->alt_lo &&
	       (o->alt_hi != WIRE_ALT_UNKNOWN || rsp - o->stack_lo >= o->stack_hi - o->stack_lo);
}

/* Returns true when a fault of a plain load would be survived now. `loads` are taken from those
 * that may be made until this is checked again. */
static inline bool loads_are_survived(struct wire_thread *t, uint32_t loads)
{
	struct wire_own *o = own_words(t);

	if (UNLIKELY(is_tracer(t) || !area()->reads_guarded || o->checks < loads || o->unsafe ||
		     on_signal_stack(o)))
		return false;
	o->checks -= loads;
	return true;
}

void *map_value(const struct wire_map *m, struct wire_thread *t,
		const void *key); /* agent_call.c: map_lookup() */
uint64_t now_ns(void);            /* agent_call.c: CLOCK_MONOTONIC */
void check_heartbeat(void);       /* thread.c */
bool slot_is_dead(uint32_t i);    /* thread.c: the slot's thread has ended */
/* thread.c: returns true when the tracer has seen that the thread blocks SIGSEGV or SIGBUS */
bool is_masked(const struct wire_thread *t);
void look_around(struct wire_thread *t, uint64_t rsp); /* thread.c: finds the thread's stacks */
/* signal.c: the agent's handlers are installed, and not blocked */
bool faults_are_survived(const struct wire_thread *t);
void restore_handlers(void); /* signal.c: in a forked child, after its text was restored */
/* fork.c: returns true when addr lies in the shared memory that a forked child does not have, and
 * the child now has memory of its own there */
bool give_memory(uint64_t addr);
/* read.c: returns true when 8 bytes can be read; by a system call */
bool probe_word(uint64_t addr);
/* Returns true when plain loads in the ranges that the thread has used may be made now, as many as
 * a walk makes: the mappings have not changed since, and a fault would be survived. */
bool reads_are_plain(struct wire_thread *t);
/* Reads the process's memory into the agent's own. Returns 0, or E_FAULT; dst then has any
 * bytes. */
int64_t read_inside(struct wire_thread *t, void *dst, uint64_t size, uint64_t src);
/* Returns true when plain loads show that the text at an address is that of a key of n bytes. */
bool text_is(struct wire_thread *t, uint64_t addr, const void *key, uint64_t n);
bool find_range(const struct wire_process *p, uint64_t addr, struct wire_range *ret); /* read.c */
/* thread.c: returns true in a vfork() child that runs in this process's memory */
bool in_vfork(uint32_t pid);
void keep_actions(void); /* signal.c: for forked children */
uint64_t agent_heal(void);
int64_t agent_guard(uint64_t on);
int64_t agent_probe_read(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			 struct wire_thread *t);
int64_t agent_probe_read_str(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			     struct wire_thread *t);
void own_task(struct wire_thread *t); /* agent_event.c: wire_own.task */
/* thread.c: returns the id of a new thread in a process without system calls, 0: not known */
uint32_t quiet_tid(uint64_t key);
struct wire_thread *agent_thread(uint64_t key);
bool forked(uint64_t key);              /* thread.c: returns true when the child is traced */
struct wire_thread *find(uint64_t key); /* thread.c: in the process's table */
void ask_name(struct wire_thread *t);   /* thread.c: wire_thread.comm */
uint64_t thread_pointer(void);          /* thread.c; 0 not known */
/* agent_seccomp.c: returns the word that distinguishes this thread from all others, 0: not known */
uint64_t own_key(void);

#endif
