/* The in-process engine's memory: shared by tracer, agent and compiled programs.
 *
 * Four mappings lie at the same addresses in the tracer and in every traced process, at a base that
 * is free in all of them (WIRE_BASE + k * WIRE_BASE_STEP):
 *
 *	base                 code     memfd, R-X (the tracer writes it by a second mapping): the agent's blob, then programs
 *	base + WIRE_FACTS    facts    memfd, R-- (the tracer: RW-): struct wire_area, map descriptors, constants, processes,
 *	                              undo log, unwind tables, stand-ins of task_structs
 *	base + WIRE_SHARED   shared   memfd, RW-: struct wire_common, map memory, thread slots
 *	base + WIRE_PRIVATE  private  anonymous, RW-, wiped on fork: struct wire_private, then, for each slot, a probe
 *	                              stack and a struct wire_own
 *
 * Trust: only the tracer writes code, facts and islands. Their files are sealed
 * (F_SEAL_FUTURE_WRITE and the others) before a process gets a descriptor, which is read-only. A
 * process may write anything into its `shared` and `private`. So the tracer reads each word once,
 * checks it, and never follows an address from there. Slot 0 is the tracer's: in the tracer its
 * pages are private memory. A child of fork() has no `shared` unless it is followed, because the
 * kernel does not copy that mapping (MADV_DONTFORK). A followed child has its parent's `shared`,
 * and may have given up the parent's rights. Processes that are named together (-p A -p B) have the
 * same `shared`, too. The agent and the programs rely only on words in `private` (addresses,
 * numbers of processes, guards). Words in `shared` are data to them. doc/inproc.md has the table of
 * writers and readers.
 *
 * and, within 2 GB of each patched module, an island: part of a memfd, R-X, with the stubs.
 *
 *	site:  jmp stub                         5 bytes; int3 fills what it leaves over
 *	stub:  struct wire_stub                 data, just before the code
 *	       [lea -128(%rsp),%rsp]            WIRE_STUB_MID and later kinds: the red zone
 *	       call gate                        6 bytes
 *	       [lea 128(%rsp),%rsp]
 *	       moved instructions, jmp back
 *	gate:  jmp *                            to a thunk, which is farther away; the island has one for each
 *	thunk: saves what the program clobbers, finds the thread, calls the program, restores
 *
 * The thunk finds its struct wire_stub behind the return address: WIRE_STUB_CALL (+ WIRE_STUB_LEA)
 * + sizeof back. Each of several probes of a stub has a block of its own: [jmp over] struct
 * wire_stub [lea] call [lea]. The jmp is there when other code runs into the block. So struct
 * wire_stub may have any alignment. A block stands before the moved instruction that it probes, and
 * a stub's blocks may be of different kinds. Programs and the agent's helpers have r12 = struct
 * wire_thread of the running thread. Always true: a traced process does not depend on the tracer's
 * life. Every word of a thread slot has one writer, except where marked. All words that the tracer
 * reads from `shared` are hostile input.
 */
#ifndef DESCRY_WIRE_INPROC_H
#define DESCRY_WIRE_INPROC_H

#include "wire/wire_record.h"

#define WIRE_BASE 0x400000000000ull
#define WIRE_BASE_STEP 0x010000000000ull
enum { WIRE_BASES = 16 };
#define WIRE_CODE_SIZE 0x08000000ull /* 128 MB of addresses; pages exist as written */
#define WIRE_FACTS WIRE_CODE_SIZE    /* from base, right behind the code */
#define WIRE_SHARED \
	0x40000000ull /* from base, right behind the facts; within reach of code's RIP-relative operands */
#define WIRE_FACTS_SIZE (WIRE_SHARED - WIRE_FACTS)
#define WIRE_SHARED_MAX 0x4000000000ull
#define WIRE_PRIVATE 0x8000000000ull /* from base */

#define WIRE_AREA_MAGIC 0x6172656164736372ull
enum { WIRE_AREA_VERSION = 8 };

enum {
	WIRE_THREADS_MAX = 1024, /* slots; the tracer may use fewer */
	WIRE_PROCESSES_MAX = 4096,
	WIRE_THREAD_HASH = 4096,     /* entries of struct wire_private.threads */
	WIRE_PROBE_STACK = 1 << 16,  /* bytes, below a struct wire_own */
	WIRE_STACK_STRIDE = 1 << 17, /* bytes from one to the next */
	WIRE_RULES = 4096,           /* entries of struct wire_private.rules */
	WIRE_CODES = 8192,           /* entries of struct wire_private.codes */
	WIRE_RANGES_MAX = 4096,      /* readable mappings of a process */
	WIRE_SITE_MAX = 64,          /* largest number of bytes that a site displaces */
	WIRE_CLAIMS = 8,             /* entries of struct wire_private.claims */
};

/* --- stubs --- */

enum wire_stub_kind {
	WIRE_STUB_ENTRY, /* first instruction: flags and red zone are free */
	WIRE_STUB_RETURN, /* at a ret: flags are free; rip and rsp shown are the caller's, as after the ret */
	WIRE_STUB_TAIL, /* at a jump out of the function: as ENTRY, shown like RETURN */
	WIRE_STUB_MID,  /* anywhere: flags and red zone are live */
	/* kinds of places in code; the kinds below are MIDs around a system call */
	WIRE_STUB_KINDS,
	/* before: programs see the kernel's registers, orig_rax is the number */
	WIRE_STUB_SYSCALL = WIRE_STUB_KINDS,
	WIRE_STUB_SYSRET, /* behind: orig_rax is the number of the call that returns */
	/* before: runs no program, keeps the number for SYSRET in the thread's calls[] */
	WIRE_STUB_SYSNOTE,
	/* behind vfork and similar calls: runs no program, finds out whether this is the child */
	WIRE_STUB_SYSFORK,
	/* Events of processes, for programs of the kernel's tracepoints. The agent's `event` makes
	 * their contexts. */
	WIRE_STUB_EVENTS,
	WIRE_STUB_ENTERS = WIRE_STUB_EVENTS, /* before: sys_enter */
	WIRE_STUB_EXITS,                     /* before exit and exit_group: sched_process_exit */
	WIRE_STUB_SENDS,                     /* before kill and similar calls: signal_generate */
	/* before execve: runs no program, reports to the tracer that another program may begin */
	WIRE_STUB_EXECS,
	WIRE_STUB_LEAVES, /* behind: sys_exit */
	WIRE_STUB_FORKS,  /* behind clone and similar calls, in the parent: sched_process_fork */
	WIRE_STUB_STARTS, /* behind the same calls, in the child: sched_switch */
	WIRE_STUB_STAYS,  /* behind execve, which has failed: runs no program */
	WIRE_STUB_ALL
};
/* Returns true for kinds behind a system call, which look the call's number up. */
static inline int wire_stub_is_behind(unsigned kind)
{
	return kind == WIRE_STUB_SYSRET || (kind >= WIRE_STUB_LEAVES && kind <= WIRE_STUB_STAYS);
}
struct wire_stub {
	uint64_t site;  /* address of the patched instruction */
	uint32_t probe; /* index in image.probes: the attach cookie */
	uint32_t kind;  /* enum wire_stub_kind; SYSRET: the call << WIRE_STUB_CALL_SHIFT */
};
/* The system call: its number + 1; 0: look it up and drop it; WIRE_STUB_CALL_KEEP: look it up. */
enum { WIRE_STUB_CALL_SHIFT = 16, WIRE_STUB_CALL_KEEP = 0x8000 };
enum { WIRE_STUB_CALL = 6, WIRE_STUB_LEA = 5 };

/* An island begins with gates. A gate that is not used is zero. */
#define WIRE_GATE_CODE \
	{ \
		0xff, 0x25, 2, 0, 0, 0, /* jmp *target(%rip) */ \
			0xc3, 0xcc      /* ret */ \
	}
enum { WIRE_GATE_BACK = 6 }; /* the ret: a gate that leads there runs no program */
struct wire_gate {
	uint8_t code[8];
	uint64_t target;
};
_Static_assert(sizeof(struct wire_gate) == 16, "the jump knows where target is");

/* In compiled code, in front of a load that survives a fault: the first half of a NOP of 8 bytes.
 * The second half is the distance from the load to the place where execution continues. */
enum { WIRE_SURVIVED = 0x5a841f0f };

/* --- maps --- */

enum wire_map_kind {
	WIRE_MAP_ARRAY, /* base: address of the values */
	WIRE_MAP_THREAD_ARRAY, /* base: offset in the thread slot. Per-CPU arrays, scratch (index modulo max_entries) */
	/* likewise, two generations: offset base + gen * gen_stride. gen_stride 0: counters, which
	 * have one, because they only grow, and the tracer only reads them */
	WIRE_MAP_AGG_ARRAY,
	WIRE_MAP_AGG_HASH, /* keyed aggregation: per thread, two generations of struct wire_agg_table */
	WIRE_MAP_HASH,     /* shared hash: struct wire_hash_entry at base */
	WIRE_MAP_RING,     /* per thread: struct wire_ring at offset base */
	WIRE_MAP_TASK, /* per thread: task storage, one value at offset base; always there, zero at first */
	/* the same in private memory: base bytes behind the place of the thread's struct
	 * wire_event. No other process writes there */
	WIRE_MAP_OWN_TASK,
	WIRE_MAP_TABLES, /* array of maps (unwind tables): base: address of uint64_t inner[max_entries], addresses of
				  the inner maps' struct wire_map, 0 none */
	WIRE_MAP_KINDS
};

/* Descriptor; LD_IMM64 of a map gives its address. Constant after load. */
struct wire_map {
	uint32_t kind, role; /* enum wire_map_kind, enum map_role */
	uint32_t key_size, value_size;
	uint32_t stride; /* bytes from value to value (arrays) or entry to entry (hashes), a multiple of 8 */
	uint32_t max_entries; /* rings: bytes, a power of two */
	uint64_t base;
	uint64_t gen_stride;
	uint64_t buckets; /* hashes: a power of two */
	uint32_t index;   /* of the map in the image */
	uint32_t pad;
	uint64_t used; /* WIRE_MAP_HASH: address of the uint64_t that counts entries in use (shared, atomic) */
	uint64_t flags; /* WIRE_MAP_BUSY_WORD */
};
/* Returns true for a map whose values have two generations. */
static inline int wire_map_is_flipped(const struct wire_map *m)
{
	return (m->kind == WIRE_MAP_AGG_ARRAY && m->gen_stride) || m->kind == WIRE_MAP_AGG_HASH;
}
/* Values start with a word that means "in use" (role MAP_SCRATCH). It is cleared when the slot gets
 * another thread, or when longjmp() has left a firing. */
enum { WIRE_MAP_BUSY_WORD = 1 };

/* An aggregation's table of one thread and generation: an index of open addressing, then dense
 * entries in the order of their making. Only the thread writes. The tracer reads the generation
 * that is not in use, and then clears it.
 *
 *	struct wire_agg_table
 *	uint32_t index[buckets]      entry number + 1, 0 free
 *	entries[max_entries]         each: uint32_t hash, uint32_t pad, key (padded to 8), value
 */
struct wire_agg_table {
	uint32_t n;    /* number of entries; stored after the entry is complete */
	uint32_t full; /* keys that had no room (also counted in WIRE_DROP_AGG) */
};

/* Shared hash, open addressing, linear: state, key (padded to 8), value. agent/map.h explains a
 * key's home. */
enum wire_hash_state { WIRE_HASH_EMPTY, WIRE_HASH_BUSY, WIRE_HASH_READY, WIRE_HASH_DELETED };
struct wire_hash_entry {
	uint32_t state; /* atomic; BUSY: a thread is writing it */
	uint32_t owner; /* of the keys whose home is here. Low half: slot + 1 of the thread that is adding or deleting one, 0
			   none. High half: how far they reach (entries, counted from here) */
};

/* A thread's ring: positions count bytes since start; data follows the header. A record is a word
 * (size | WIRE_RING_* bits), 4 bytes of padding, `size` bytes, rounded up to 8. A record never
 * wraps: WIRE_RING_PAD fills the end. The tracer alone writes `tail`. */
enum {
	WIRE_RING_BUSY = 1u << 31,
	WIRE_RING_DISCARD = 1u << 30,
	WIRE_RING_PAD = 1u << 29,
	WIRE_RING_SIZE = (1u << 29) - 1,
	WIRE_RING_HEAD = 8
};
struct wire_ring {
	uint64_t head; /* bytes reserved so far */
	uint8_t pad0[56];
	uint64_t tail; /* bytes consumed so far */
	uint8_t pad1[56];
	/* uint8_t data[max_entries] */
};

/* --- threads --- */

/* A system call that is under way and whose number is known only at run time. */
struct wire_call {
	uint64_t rsp; /* the program's rsp at the call; 0: free */
	uint64_t number;
};
enum { WIRE_CALLS = 8 };

/* A thread slot: data about a firing, and data of the thread's programs. */
struct wire_thread {
	/* In the tracer's pid namespace; only printed, see struct wire_own. For a process of
	 * another namespace they are 0 until the tracer has looked at it, and `tid` of threads
	 * other than the first is own_tid. The tracer writes them too for such a process. */
	uint32_t tid, pid;
	uint64_t cookie; /* index in image.probes of the firing */
	/* While a program with aggregations runs: wire_area.gen; else 0. */
	uint64_t gen;
	uint32_t owner;  /* atomic: index + 1 in wire_area.processes, 0 free */
	uint32_t slot;   /* own number */
	uint64_t random; /* state of get_prandom_u32 */
	/* same as wire_own.task; programs use this one when no other process has the slots */
	uint64_t task;
	char comm[16];
	uint64_t skipped_nested; /* firings skipped because one was running */
	uint64_t budget;         /* compiled code's own: backward branches left */
	/* ns: when comm was read; for threads in wire_kept.quiet the tracer writes comm */
	uint64_t comm_time;
	uint32_t ended;   /* own_tid, when the end of the thread has fired */
	uint32_t own_tid; /* in its own pid namespace */
	uint64_t violations,
		violation; /* how many; the last one's instruction, ~0 a helper's argument */
	uint32_t number;   /* for compiled code: number of the system call that returns */
	/* a vfork() child runs on this thread's stack and slot, so its system calls are not this
	 * process's */
	uint32_t vforked;
	uint32_t uid, gid;
	/* calls under way: one, and one more for each signal handler that interrupts it */
	struct wire_call calls[WIRE_CALLS];
	/* from WIRE_THREAD_SPACE: map memory of this thread */
};
enum { WIRE_THREAD_SPACE = 512 };
/* A thread writes the value of wire_area.gen that it has read into `gen`, then reads wire_area.gen
 * again, and starts over when it differs. So when `gen` is 0 or the new generation, after the
 * tracer has changed wire_area.gen and every thread has passed a barrier, the thread has finished
 * with the old one. `gen` may still show the old one for a moment, but the thread does not use
 * it. */
enum { WIRE_GEN_RUNS = 2, WIRE_GEN_TURN = 4 };

/* For each slot, the words that this process's agent and programs rely on. They lie in private
 * memory on top of the slot's probe stack. A process that shares the slots (a child of fork(),
 * which may have fewer rights) can write them in its own memory only. Slots are WIRE_STACK_STRIDE
 * << stack_shift apart, so the address is (that of the slot >> wire_area.stack_shift) +
 * wire_area.stacks. */
enum { WIRE_OWN_RANGES = 7, WIRE_OWN_WALK = 136, WIRE_OWN_TEXTS = 256 };
struct wire_own {
	uint64_t alt_lo,
		/* the thread's signal stack at the last look; alt_hi WIRE_ALT_UNKNOWN: it may have
		 * one */
		alt_hi;
	uint64_t frame; /* for compiled code: lowest byte of the running program's stack */
	uint64_t entry; /* address of the struct wire_thread_entry that leads to the slot; valid while holder != 0 */
	uint64_t regs;               /* address of struct pt_regs of the firing, 0 none */
	uint64_t stack_lo, stack_hi; /* readable range around rsp, looked up on the slow path */
	uint64_t range_lo, range_hi; /* the last other readable range that was used */
	uint32_t range_version;      /* wire_process.version when the ranges were found */
	uint32_t checks; /* reads left until the next check that a fault would be survived */
	uint32_t unsafe; /* a fault would not be survived, so reads are system calls */
	uint32_t nested; /* firings skipped since the running one began */
	uint64_t key;    /* identity word */
	uint32_t holder; /* atomic: tid of the thread of this process that has the slot, 0 none has */
	uint32_t pid;    /* in its own pid namespace */
	/* For the tracer's slot 0: the tracer fires an event of process `pid`, and signals go to
	 * `pidfd` (-1: to no process), because the number may belong to another process by now. */
	uint32_t other;
	int32_t pidfd;
	uint64_t task; /* address of the thread's stand-in for struct task_struct, 0 none */
	/* bits: signal - 1. Sent when the firing has ended, because a handler may never return. */
	uint64_t signals;
	/* Other ranges that were found: a walk of an interpreter's frames goes to and fro between a
	 * few. hi 0: none. */
	struct wire_own_range {
		uint64_t lo, hi;
	} ranges[WIRE_OWN_RANGES];
	uint64_t ranges_at; /* the next to be replaced */
	/* firings left that read an interpreter's frame by plain loads until the next check; 0
	 * while they would not be survived */
	uint32_t named;
	uint32_t unused;
	uint64_t walk[WIRE_OWN_WALK]; /* state of a walk up the stack: bpf/unwind.bpf.h */
	/* Texts that were keys of an aggregation, and the places of their values in the slot:
	 * agent/key.c. */
	struct wire_own_text {
		uint64_t addr;  /* of the text; or WIRE_NAMED | the interpreter's number for it */
		uint64_t value; /* offset in the slot */
		uint32_t map;
		uint32_t turn; /* wire_area.gen: until the next one, the entry keeps its key */
	} texts[WIRE_OWN_TEXTS];
};
#define WIRE_NAMED (1ull << 63) /* no address of user space has it */
enum { WIRE_OWN_NAMED = 1 << 15, WIRE_TEXT_MIX = 0x5bd1e995, WIRE_TEXT_SHIFT = 32 - 8 };
/* Returns the index in wire_own.texts of a text of map number `map`. */
static inline uint32_t wire_text_place(uint64_t addr, uint32_t map)
{
	return ((uint32_t)addr + map) * (uint32_t)WIRE_TEXT_MIX >> WIRE_TEXT_SHIFT;
}
_Static_assert(WIRE_OWN_TEXTS == 1 << (32 - WIRE_TEXT_SHIFT), "bits of the hash");
/* Programs then stay on the stack that the thread is on. */
#define WIRE_ALT_UNKNOWN (~0ull >> 1)

/* The table by which thunks find a thread: one entry, no probing. Other threads read an entry while
 * it is written, so `thread` is written before `key`. An entry whose thread lives is never given to
 * another; the second of two threads that collide takes the slow path. A thunk continues only where
 * `rsp` is negative, which a free entry's is not. */
struct wire_thread_entry {
	uint64_t key;
	uint64_t thread; /* address of struct wire_thread */
	/* While a probe fires: the stack pointer of its thunk, at most WIRE_THUNK_BELOW bytes under
	 * the program's own (nested firings keep it). WIRE_IDLE: no probe fires. 0: the thread is
	 * not known. */
	uint64_t rsp;
	/* wire_told.gone + 1 when the key was removed, because the thread has ended; 0: it was not.
	 * Used where the agent makes no system calls. */
	uint64_t retired;
};
#define WIRE_IDLE (~0ull)
/* Red zone, return address, rax, flags, r12, r11, r10. A signal's frame is larger. */
enum { WIRE_THUNK_BELOW = 128 + 6 * 8, WIRE_ENTRY_SHIFT = 5 };

/* The tracer's facts about the thread in a slot, for processes whose agent makes no system calls
 * (wire_kept.quiet). They lie in the facts, and are valid when process and tid are those that the
 * agent knows. */
struct wire_told {
	uint32_t process; /* index + 1 in wire_area.processes, 0: not known */
	uint32_t tid;     /* written last, cleared first */
	uint32_t gone;    /* looks in a row that have not found it; 0: it lives */
	uint32_t masked;  /* it has SIGSEGV or SIGBUS blocked */
};
#define WIRE_THREAD_MIX 0x9e3779b97f4a7c15ull

enum wire_process_state { WIRE_PROCESS_FREE, WIRE_PROCESS_TRACED, WIRE_PROCESS_GONE };
struct wire_range {
	uint64_t lo, hi;
};
/* In the facts. The tracer gives the processes that it attaches to the numbers from 1 on. Forked
 * children take theirs from WIRE_PROCESSES_MAX - 1 down. */
struct wire_process {
	uint32_t state; /* enum wire_process_state, atomic */
	/* in the tracer's namespace; 0: a child that the tracer has not looked at, see struct
	 * wire_said */
	uint32_t pid;
	uint32_t own_pid; /* in its own namespace */
	uint32_t uid, gid, ppid;
	uint32_t nranges; /* tracer's list of readable mappings; odd `version`: being written */
	uint32_t version;
	uint64_t ranges; /* address of struct wire_range[WIRE_RANGES_MAX] */
	uint64_t task; /* address of the stand-in for its struct task_struct (kernel layout), 0 none */
	uint64_t ranges_time; /* CLOCK_MONOTONIC ns: when `ranges` was read; stored last */
	/* from /proc/PID/stat; distinguishes it from a later process with the same number */
	uint64_t started;
};
/* Calls behind which descry cannot stay in the process. */
enum wire_leaves {
	WIRE_STAYS,
	WIRE_LEAVES_SHARES, /* makes a process that runs in this one's memory */
	WIRE_LEAVES_THREAD, /* makes a thread that has another one's thread pointer, or none */
	WIRE_LEAVES_LOCKS,  /* locks all its memory */
};
/* The stack of a thread that waits between the agent's leave_wait and leave_end for the detach. */
struct wire_leaving {
	uint64_t left; /* naps */
	uint64_t skip; /* bytes above `back` that the stub has taken off the stack */
	uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags;
	uint64_t back; /* address in the stub */
};
/* The process's own statements: in shared memory, at the same index. */
struct wire_said {
	uint32_t own_pid; /* a forked child's number, written last; 0: ignore the entry */
	uint32_t uid, gid, ppid;
	uint32_t ranges_wanted; /* an address was in no range */
	uint32_t exit_tid;      /* atomic: the thread that fired the process's end, 0: none */
	uint32_t execs;         /* atomic: calls of execve that have not returned */
	uint32_t quiet;         /* its wire_kept.quiet is set */
	uint32_t unwind_asked;  /* WIRE_UNWIND_ASK_*: requested since its list was written */
	uint32_t leaves;        /* enum wire_leaves: descry must detach from it */
};

/* Byte offsets of members of the kernel's structures that the agent writes. */
struct wire_task_layout {
	uint32_t task_size, signal_size,
		mm_size; /* multiples of 8; task_size 0: there are no stand-ins of threads */
	uint32_t pid, tgid, comm, mm, signal, real_parent, exit_code; /* in struct task_struct */
	uint32_t nr_threads, live;                                    /* in struct signal_struct */
};
/* The data that programs take addresses from. It lies in each thread's slot at wire_area.event_at.
 * Where other processes have the slots too (wire_area.together), it lies in private memory,
 * WIRE_EVENT_BELOW bytes under each struct wire_own. Behind it stand, twice (for the thread and for
 * another), a task_struct, a signal_struct and an mm_struct; then comes the value of
 * WIRE_MAP_OWN_TASK. */
enum { WIRE_EVENT_WORDS = 8 };
struct wire_event {
	uint64_t word[WIRE_EVENT_WORDS]; /* the tracepoint's arguments */
};
/* Above the page that WIRE_KEPT takes from slot 0. */
enum {
	WIRE_EVENT_BELOW = WIRE_STACK_STRIDE - 4096 - 7488 /* sizeof(struct wire_own) */,
	WIRE_EVENT_MAX = WIRE_EVENT_BELOW - WIRE_PROBE_STACK - 4096,
};
/* In each thread's slot at wire_area.wanted. */
struct wire_wanted {
	/* written by the tracer: address of the requested task_struct, one of wire_area.rooms; 0:
	 * not known */
	uint64_t answer;
	uint32_t tid; /* atomic: thread whose task_struct is requested, ~0: none; 0: answered */
	uint32_t pad;
};
/* A thread with a request adds one to `asked`, wakes the tracer, and waits until `answered` has
 * reached that value: at most a fifth of a second, and not at all when no tracer answers. */
struct wire_ask {
	uint32_t asked; /* atomic, futex */
	uint32_t on;    /* a tracer answers */
	uint8_t pad[56];
	uint32_t answered; /* futex: the value of `asked` when all earlier requests were answered */
	uint8_t pad1[60];
};

/* The signals that the agent may handle, and an action in rt_sigaction(2)'s layout. */
enum wire_signal { WIRE_SIGNAL_SEGV, WIRE_SIGNAL_BUS, WIRE_SIGNAL_TRAP, WIRE_SIGNALS };
struct wire_sigaction {
	uint64_t handler, flags, restorer, mask;
};

/* Process-private memory, all zero in a forked child. */
struct wire_private {
	uint64_t ready; /* 0: not set up (a forked child): slow path */
	uint32_t process; /* index in wire_area.processes; 0 in a child that is not traced: it has no shared memory */
	uint32_t off; /* this process is not traced: programs do not run */
	/* bit n: the agent's handler of WIRE_SIGNAL_n is installed, action[n] is the program's
	 * own */
	uint64_t signals;
	struct wire_sigaction action[WIRE_SIGNALS];
	uint64_t no_slot;        /* agent: ns until which no slot is searched */
	uint32_t next_slot, pad; /* agent: where the next search for a dead thread's slot begins */
	uint64_t rules_version;  /* wire_area.unwind_version that rules[] is of */
	uint64_t claims
		[WIRE_CLAIMS]; /* agent: keys of threads that look for a slot without blocking signals, 0 free */
	uint32_t pid;           /* agent: number of a forked child in its own namespace */
	uint32_t codes_version; /* wire_area.codes_version that codes[] is of */
	uint64_t spare[37];
	struct wire_thread_entry threads[WIRE_THREAD_HASH];
	struct wire_thread_entry self; /* the tracer's: of slot 0, which nobody looks for */
	uint64_t rules
		[WIRE_RULES]; /* stacks met an address before: address << 16 | number of its unwind rule; 0 free */
	uint32_t codes
		[WIRE_CODES]; /* code objects of which the names were asked for: bpf/language.bpf.h */
};

/* Data that forked children need too: the page at WIRE_KEPT of the private mapping, in place of the
 * guard page of slot 0's probe stack (that slot is the tracer's). fork() copies this page and does
 * not wipe it. The tracer fills traps, pid and no_vm_read. The agent's `guard` installs the
 * handlers, or the tracer does, which then fills signals and action here and in wire_private. Where
 * the program has a handler, the kernel gets its mask, and its flags without SA_RESETHAND;
 * otherwise an empty mask and no flags; always SA_SIGINFO | SA_RESTORER. */
struct wire_trap {
	uint64_t site, code; /* code: where to continue, the stub's first instruction */
};
struct wire_kept {
	uint64_t signals; /* as wire_private.signals and action */
	struct wire_sigaction action[WIRE_SIGNALS];
	uint64_t traps, ntraps; /* address of struct wire_trap[], by site */
	uint32_t pid;           /* of wire_undo records: the patched process; 0: not known */
	uint32_t no_vm_read; /* process_vm_readv is refused (the tracer sets it where seccomp filters) */
	uint64_t lock;       /* lock of action[]: own pid << 32 | tid */
	uint32_t sequence; /* odd: action[] is being written */
	/* a thread has switched the processor's counter off (PR_SET_TSC): the agent uses none */
	uint32_t no_counter;
	/* A seccomp filter checks system calls of the process, or is about to. The agent then makes
	 * none, because the filter may end the process at an unexpected one. Never cleared. The
	 * agent sets it in front of seccomp(2) and prctl(2), and the tracer where it finds a
	 * filter. */
	uint32_t quiet;
	uint32_t busy; /* atomic: threads that make system calls of the agent outside of a firing */
	uint32_t process;  /* as wire_private.process */
	uint32_t fsgsbase; /* rdfsbase may be used */
	/* agent: number of waits for wire_process.ranges in a row that were in vain */
	uint32_t list_vain;
	/* agent: this child, or its parent, is in another pid namespace than the tracer */
	uint32_t apart;
	/* name for threads whose name cannot be queried: that of the thread that set `quiet` */
	char comm[16];
};
/* A page that is mapped while an attach opens its files; offset from base. */
#define WIRE_MAIL (WIRE_BASE_STEP - 0x10000)
/* offset from the private mapping */
#define WIRE_KEPT ((sizeof(struct wire_private) + 4095) & ~4095ull)

/* The word that distinguishes threads. */
enum wire_identity {
	WIRE_ID_FS32,   /* 32-bit word at %fs:id_disp: the C library's copy of the thread id */
	WIRE_ID_FS64,   /* 64-bit word at %fs:id_disp (0: the thread pointer, x86-64 psABI TLS) */
	WIRE_ID_FSBASE, /* rdfsbase */
};
/* < WIRE_THREAD_HASH. Thread ids follow one another. */
static inline uint32_t wire_thread_hash(uint64_t key, uint32_t identity)
{
	return identity == WIRE_ID_FS32 ? (uint32_t)key % WIRE_THREAD_HASH
					: (uint32_t)(key * WIRE_THREAD_MIX >> 52);
}

/* One undo record per patched site. Valid when len != 0: the tracer writes it, len last, before the
 * patch, and clears len after the text is restored and no program counter is in the stub. A part of
 * the site on each side of a page boundary may be at a different stage: `before`, WIRE_UNDO_HOLD
 * (in front of the boundary only) or `after`. */
struct wire_undo {
	uint64_t site;
	/* the process (in the tracer's namespace); the upper 10 bits count the programs that it
	 * executed before */
	uint32_t pid;
	uint8_t len, data, pad[2]; /* data: not text but the semaphore or flag of a USDT probe */
	uint64_t stub;             /* its first byte of code, 0 none (a trap) */
	uint32_t stub_len;         /* bytes from `stub` to its end */
	uint32_t pad1;
	uint8_t before[WIRE_SITE_MAX], after[WIRE_SITE_MAX];
	/* offset from `stub` of the copy of the instruction at site + i, 0xffff: no instruction
	 * begins there */
	uint16_t moved[WIRE_SITE_MAX];
};
#define WIRE_UNDO_HOLD 0xeb, 0xfe /* jmp to itself: holds a thread until the site is whole again */

/* Names of the memory files, as /proc/PID/maps shows them behind "/memfd:". */
#define WIRE_MEMFD_PREFIX "descry-"
#define WIRE_MEMFD_CODE "descry-code"
#define WIRE_MEMFD_FACTS "descry-facts"
#define WIRE_MEMFD_SHARED "descry-shared"
#define WIRE_MEMFD_ISLAND "descry-island"

/* ns = base_ns + (tsc * mult >> 64): the product has 128 bits, the sum 64. It never changes. */
struct wire_clock {
	uint64_t base_ns;
	uint64_t mult; /* 0: no usable TSC, so the agent reads the kernel's clock */
};

/* At the start of the facts. */
struct wire_area {
	uint64_t magic;
	uint32_t version, size_of_thread; /* WIRE_AREA_VERSION, thread_stride */
	uint64_t base;                    /* of the four mappings */
	uint64_t shared_size, code_size, private_size;
	/* bytes from here to the end of the shared mapping, which programs may read */
	uint64_t span;
	uint32_t tracer_pid, watchdog_pid;
	/* CLOCK_MONOTONIC ns of the tracer's last sign of life; slow paths check it */
	uint64_t heartbeat;
	/* age of the heartbeat in ns at which programs stop running; 0: never */
	uint64_t heartbeat_max;
	/* WIRE_GEN_RUNS | aggregation generation, 0 or 1 | WIRE_GEN_TURN * changes so far */
	uint32_t gen;
	/* a traced process has filtered its system calls, so children that are not traced may have
	 * too */
	uint32_t filtered;
	uint64_t entries; /* address of wire_private.threads: beside gen, which thunks read, too */
	struct wire_clock clock;
	uint64_t state; /* address of struct wire_state */
	uint64_t maps;  /* address of struct wire_map[nmaps] */
	uint32_t nmaps, nprobes;
	uint64_t threads;           /* address of slot 0 */
	uint64_t thread_stride;     /* a power of two */
	uint64_t stacks;            /* of struct wire_own */
	uint64_t told;              /* address of struct wire_told[nthreads] */
	uint32_t stack_shift, zero; /* zero: stays 0 */
	uint32_t nthreads;
	uint32_t process_count;   /* number of processes that the tracer has numbered */
	uint64_t processes;       /* address of struct wire_process[WIRE_PROCESSES_MAX] */
	uint64_t said;            /* address of struct wire_said[WIRE_PROCESSES_MAX] */
	uint64_t undo;            /* address of struct wire_undo[nundo] */
	uint32_t nundo, identity; /* enum wire_identity */
	uint64_t id_disp;
	uint64_t follow; /* fork children are traced too */
	uint64_t counters_base; /* offset in a thread slot of the uint64_t counters (wire_counter, then per probe) */
	uint64_t reads_guarded; /* the agent's SIGSEGV/SIGBUS handler is in place: plain loads are safe */
	uint64_t unwind_version; /* of the unwind tables; odd: being written */
	uint64_t event;          /* bytes from a struct wire_event on, 0: there are none */
	uint64_t event_at; /* offset in a thread slot of its struct wire_event, if it is there */
	uint64_t wanted;   /* offset in a thread slot of its struct wire_wanted, 0 none */
	uint64_t rooms;    /* address of the first stand-in that the tracer uses for answers */
	uint32_t room_size, nrooms;
	struct wire_task_layout task;
	/* address of the bell of threads that wait for the tracer, 0: none; used by the watchdog */
	uint64_t bell;
	/* Processes may have each other's slots, because children are followed or several processes
	 * are named. One of them may later have fewer rights than another. */
	uint64_t together;
	/* the values of WIRE_MAP_OWN_TASK; own_size 0: there are none */
	uint64_t own_at, own_size;
	uint64_t unwinds; /* address of struct wire_unwind_process[WIRE_PROCESSES_MAX], 0 none */
	/* The tracer detaches, or has ended: children that begin now are not followed. */
	uint64_t closing;
	/* Changes when names that were asked for, and not read, shall be asked for again. */
	uint32_t codes_version, pad;
};

/* At the start of the shared mapping. */
struct wire_common {
	uint64_t no_thread;   /* firings skipped: no slot free (atomic) */
	uint32_t child_count; /* forked children that have numbered themselves (atomic) */
	uint32_t pad[13];
	struct wire_ask ask;
};

/* --- the agent's blob --- */

/* A helper that the kernel does not have: the thread's CPU time in ns, never 0. */
enum { WIRE_HELPER_THREAD_TIME = 60000 };

/* Starts the code mapping. Helpers take eBPF's r1..r5 and, as sixth argument, the struct
 * wire_thread. They keep the C ABI. */
#define WIRE_AGENT_ENTRIES(X) \
	X(thread, "(key) -> struct wire_thread or 0; the slow path of every thunk") \
	X(nested, \
	  "(struct wire_thread *, rsp) -> 1: run (longjmp has left the firing before), 0: skip, counted") \
	X(map_lookup, "helper 1") \
	X(map_update, "helper 2") \
	X(map_delete, "helper 3") \
	X(probe_read, "helpers 112, 113, 148 and 4: dst, size, src") \
	X(probe_read_str, "helpers 114, 115: dst, size, src") \
	X(read_own, "helper 113 where it reads nothing of the program's: see jit_env.own_reads") \
	X(read_own_str, "helper 115, likewise") \
	X(ktime, "helper 5") \
	X(prandom, "helper 7") \
	X(cpu, "helper 8") \
	X(pid_tgid, "helper 14") \
	X(uid_gid, "helper 15") \
	X(comm, "helper 16") \
	X(current_task, "helpers 35, 158") \
	X(get_stack, "helpers 67, 27") \
	X(send_signal, "helper 109: notes the signal for `signals`") \
	X(send_signal_thread, "helper 117") \
	X(signals, "() sends the signals of a firing that has ended") \
	X(ring_reserve, "helper 131") \
	X(ring_submit, "helper 132") \
	X(ring_discard, "helper 133") \
	X(ring_output, "helper 130") \
	X(ring_query, "helper 134") \
	X(task_storage_get, "helper 156") \
	X(task_storage_delete, "helper 157") \
	X(task_pt_regs, "helper 175") \
	X(strncmp, "helper 182") \
	X(violation, \
	  "(insn): a program touched memory that is not its own; counts this and ends the firing") \
	X(segv, "signal handler for SIGSEGV and SIGBUS") \
	X(sigaction, "rt_sigaction(2) of the traced program: keeps its action behind the agent's") \
	X(int3, "signal handler for SIGTRAP") \
	X(heal, "() in a forked child: restores each of its patched sites") \
	X(guard, \
	  "(on) in the target: installs (bits WIRE_SIGNAL_n) or removes (0) the handlers; 0 or -errno") \
	X(probe_write, "helper 36: dst, src, size") \
	X(restorer, \
	  "sa_restorer of the agent's handlers, where the program's own action has none") \
	X(sigaction_site, \
	  "in place of a thunk, in front of a system call: `sigaction` does rt_sigaction, and the call is skipped") \
	X(seccomp_site, \
	  "likewise: sets wire_kept.quiet before seccomp or prctl installs a filter") \
	X(prctl_entry, "the same at the entry of the C library's prctl") \
	X(syscall_entry, "the same at the entry of its syscall") \
	X(fork_site, \
	  "likewise, behind a call that may make a process: maps memory into a child without shared memory") \
	X(ustack, "d_ustack of bpf/") \
	X(stack_id, "d_stack_id of bpf/") \
	X(language, "d_language of bpf/") \
	X(agg_text, "d_agg_text of bpf/") \
	X(agg_python, "d_agg_python of bpf/") \
	X(agg_ruby, "d_agg_ruby of bpf/") \
	X(id_python, "d_id_python of bpf/") \
	X(id_ruby, "d_id_ruby of bpf/") \
	X(id_texts, "d_id_texts of bpf/") \
	X(thread_time, "helper WIRE_HELPER_THREAD_TIME") \
	X(clone_site, \
	  "in place of a thunk, in front of a system call: waits for the detach before one that descry cannot follow") \
	X(leave_wait, "no function: a thread that waits there has a struct wire_leaving") \
	X(leave_end, "behind it") \
	X(event, \
	  "(struct pt_regs *, struct wire_stub *, thread) of a WIRE_STUB_EVENTS kind -> the program's context; 0: no such event")
enum wire_agent_entry {
#define X(name, what) WIRE_AGENT_##name,
	WIRE_AGENT_ENTRIES(X)
#undef X
		WIRE_AGENT_ENTRY_COUNT
};
struct wire_agent_head {
	uint64_t magic; /* WIRE_AREA_MAGIC */
	uint32_t version, nentries;
	uint32_t size, pad;                     /* bytes of the whole blob */
	uint32_t entry[WIRE_AGENT_ENTRY_COUNT]; /* from the head */
};

_Static_assert(sizeof(struct wire_stub) == 16, "stub");
_Static_assert(sizeof(struct wire_map) == 72, "map");
_Static_assert(sizeof(struct wire_ring) == 128, "ring");
_Static_assert(sizeof(struct wire_thread) <= WIRE_THREAD_SPACE, "thread");
_Static_assert(sizeof(struct wire_own) == 7488, "above a probe stack");
_Static_assert(WIRE_EVENT_BELOW + sizeof(struct wire_own) + 4096 == WIRE_STACK_STRIDE,
	       "below a probe stack");
_Static_assert(sizeof(struct wire_thread_entry) == 1 << WIRE_ENTRY_SHIFT, "found by a shift");
_Static_assert(sizeof(struct wire_undo) == 288, "undo");
_Static_assert(sizeof(struct wire_process) == 64, "process");
_Static_assert(sizeof(struct wire_said) == 40, "what a process says");
_Static_assert(offsetof(struct wire_common, ask) == 64, "cache lines");
_Static_assert(offsetof(struct wire_private, threads) == 512, "private");
_Static_assert(sizeof(struct wire_sigaction) == 32, "the kernel's struct sigaction");

#endif
