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
 * (F_SEAL_FUTURE_WRITE and the others) before a process gets a descriptor, which is read-only. What
 * lies in `shared` and `private` of a process may hold anything: the tracer reads each word once,
 * checks it, and never follows an address from there. Slot 0 is the tracer's: in the tracer its
 * pages are private memory. A child of fork() has no `shared` unless children are followed: the
 * kernel does not copy that mapping (MADV_DONTFORK). One that is followed has its parent's `shared`
 * and may have given up the parent's rights; processes that are named together (-p A -p B) have the
 * same `shared`, too. What the agent and the programs go by (addresses, numbers of processes,
 * guards) lies in `private`, and what lies in `shared` is data to them.
 * doc/inproc.md has the table of who writes and reads what.
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
 * + sizeof back. That holds for each of several probes of a stub: each has a block of its own, [jmp
 * over] struct wire_stub [lea] call [lea], the jmp where other code runs into it; so struct
 * wire_stub is at any alignment. A block stands before the moved instruction that it probes: a
 * stub's blocks may be of different kinds. Programs and the agent's helpers have r12 = struct
 * wire_thread of the running thread.
 * Always true: nothing in a traced process depends on the tracer's life; one writer for everything
 * in a thread slot but what is marked; what the tracer reads from `shared` is hostile input.
 */
#ifndef DESCRY_WIRE_INPROC_H
#define DESCRY_WIRE_INPROC_H

#include "wire/record.h"

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
enum { WIRE_AREA_VERSION = 4 };

enum {
	WIRE_THREADS_MAX = 1024, /* slots; the tracer may use fewer */
	WIRE_PROCESSES_MAX = 4096,
	WIRE_THREAD_HASH = 4096,     /* entries of struct wire_private.threads */
	WIRE_PROBE_STACK = 1 << 16,  /* bytes, below a struct wire_own */
	WIRE_STACK_STRIDE = 1 << 17, /* bytes from one to the next */
	WIRE_RULES = 4096,           /* entries of struct wire_private.rules */
	WIRE_RANGES_MAX = 4096,      /* readable mappings of a process */
	WIRE_SITE_MAX = 64,          /* bytes that a site displaces at most */
	WIRE_CLAIMS = 8,             /* entries of struct wire_private.claims */
};

/* --- stubs --- */

enum wire_stub_kind {
	WIRE_STUB_ENTRY, /* first instruction: flags and red zone are free */
	WIRE_STUB_RETURN, /* at a ret: flags are free; rip and rsp shown are the caller's, as after the ret */
	WIRE_STUB_TAIL, /* at a jump out of the function: as ENTRY, shown like RETURN */
	WIRE_STUB_MID,  /* anywhere: flags and red zone are live */
	WIRE_STUB_KINDS, /* kinds of places in code; what follows are MIDs around a system call, in programs for such */
	WIRE_STUB_SYSCALL =
		WIRE_STUB_KINDS, /* before: shown are the kernel's registers, orig_rax the number */
	WIRE_STUB_SYSRET,        /* behind: orig_rax is the number of the call that returns */
	WIRE_STUB_SYSNOTE, /* before: runs nothing, keeps the number for SYSRET in the thread's calls[] */
	WIRE_STUB_SYSFORK, /* behind vfork and the like: runs nothing, finds out whether this is the child */
	/* Events of processes: programs made for the kernel's tracepoints, with contexts that the
	 * agent's `event` makes up. */
	WIRE_STUB_EVENTS,
	WIRE_STUB_ENTERS = WIRE_STUB_EVENTS, /* before: sys_enter */
	WIRE_STUB_EXITS,                     /* before exit and exit_group: sched_process_exit */
	WIRE_STUB_SENDS,                     /* before kill and the like: signal_generate */
	WIRE_STUB_EXECS, /* before execve: runs nothing, tells the tracer that another program may begin */
	WIRE_STUB_LEAVES, /* behind: sys_exit */
	WIRE_STUB_FORKS,  /* behind clone and the like, in the parent: sched_process_fork */
	WIRE_STUB_STARTS, /* behind them, in the child: sched_switch */
	WIRE_STUB_STAYS,  /* behind execve: runs nothing, it has failed */
	WIRE_STUB_ALL
};
/* Of the kinds around a system call: is it behind, so that its number is looked up? */
static inline int wire_stub_is_behind(unsigned kind)
{
	return kind == WIRE_STUB_SYSRET || (kind >= WIRE_STUB_LEAVES && kind <= WIRE_STUB_STAYS);
}
struct wire_stub {
	uint64_t site;  /* address of the patched instruction */
	uint32_t probe; /* index in image.probes: the attach cookie */
	uint32_t kind;  /* enum wire_stub_kind; SYSRET: the call << WIRE_STUB_CALL_SHIFT */
};
/* Which call: its number + 1; 0: look it up and forget it; WIRE_STUB_CALL_KEEP: look it up. */
enum { WIRE_STUB_CALL_SHIFT = 16, WIRE_STUB_CALL_KEEP = 0x8000 };
enum { WIRE_STUB_CALL = 6, WIRE_STUB_LEA = 5 };

/* --- maps --- */

enum wire_map_kind {
	WIRE_MAP_ARRAY, /* base: address of the values */
	WIRE_MAP_THREAD_ARRAY, /* base: offset in the thread slot. Per-CPU arrays, scratch (index modulo max_entries) */
	WIRE_MAP_AGG_ARRAY, /* likewise, two generations: offset base + gen * gen_stride */
	WIRE_MAP_AGG_HASH, /* keyed aggregation: per thread, two generations of struct wire_agg_table */
	WIRE_MAP_HASH,     /* shared hash: struct wire_hash_entry at base */
	WIRE_MAP_RING,     /* per thread: struct wire_ring at offset base */
	WIRE_MAP_TASK, /* per thread: task storage, one value at offset base; always there, zero at first */
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
/* Values start with a word that says "in use" (role MAP_SCRATCH): cleared when a slot changes
 * hands, or a firing was left by longjmp. */
enum { WIRE_MAP_BUSY_WORD = 1 };

/* An aggregation's table of one thread and generation: an index of open addressing, then dense
 * entries in the order they were made. Only the thread writes; the tracer reads a generation that
 * is not in use and then clears it.
 *
 *	struct wire_agg_table
 *	uint32_t index[buckets]      entry number + 1, 0 free
 *	entries[max_entries]         each: uint32_t hash, uint32_t pad, key (padded to 8), value
 */
struct wire_agg_table {
	uint32_t n;    /* entries made: stored after the entry is complete */
	uint32_t full; /* keys that found no room (also counted in WIRE_DROP_AGG) */
};

/* Shared hash, open addressing, linear: state, key (padded to 8), value. What a key's home is:
 * agent/map.h. */
enum wire_hash_state { WIRE_HASH_EMPTY, WIRE_HASH_BUSY, WIRE_HASH_READY, WIRE_HASH_DELETED };
struct wire_hash_entry {
	uint32_t state; /* atomic; BUSY: its maker is writing */
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

/* A system call under way whose number only the running program knows. */
struct wire_call {
	uint64_t rsp; /* of the program at it; 0 free */
	uint64_t number;
};
enum { WIRE_CALLS = 8 };

/* A thread slot: what a firing tells, and data of its programs. */
struct wire_thread {
	/* As the tracer's pid namespace sees them; shown, see struct wire_own. Of a process of
	 * another namespace: 0 until the tracer has looked at it, and `tid` of threads that are
	 * not the first is own_tid. The tracer writes them too, of such a process. */
	uint32_t tid, pid;
	uint64_t cookie; /* index in image.probes of the firing */
	/* While a program with aggregations runs: WIRE_GEN_RUNS | generation; else 0. */
	uint64_t gen;
	uint32_t owner;  /* atomic: index + 1 in wire_area.processes, 0 free */
	uint32_t slot;   /* own number */
	uint64_t random; /* state of get_prandom_u32 */
	uint64_t task; /* as wire_own.task, where programs go by this one: no other process has the slots */
	char comm[16];
	uint64_t skipped_nested; /* firings skipped because one was running */
	uint64_t budget;         /* compiled code's own: backward branches left */
	uint64_t comm_time; /* ns: when comm was read; of threads in wire_kept.quiet the tracer writes comm */
	uint32_t ended;   /* it has told of its own end: own_tid */
	uint32_t own_tid; /* as its own pid namespace sees it */
	uint64_t violations,
		violation; /* how many; the last one's instruction, ~0 a helper's argument */
	uint32_t number;   /* compiled code's own: of the system call that returns */
	uint32_t vforked; /* a vfork() child runs on this thread's stack and slot: its system calls are not this process's */
	uint32_t uid, gid;
	struct wire_call calls
		[WIRE_CALLS]; /* those under way: one, and one more for each signal handler upon it */
			      /* from WIRE_THREAD_SPACE: map memory of this thread */
};
enum { WIRE_THREAD_SPACE = 512 };
/* A thread shows what it has read of wire_area.gen, reads that again, and starts over when it is
 * another: so one that shows 0, or the new generation, after the tracer has written that and every
 * thread has passed a barrier, has done with the old one. It may still show the old one for a
 * moment, but does not use it. */
enum { WIRE_GEN_RUNS = 2 };

/* What this process's agent and programs go by, of each slot, in private memory on top of its probe
 * stack: a process that shares the slots (a child of fork(), which may have fewer rights) writes it
 * in its own memory only. Slots are WIRE_STACK_STRIDE << stack_shift apart, so its address is (that
 * of the slot >> wire_area.stack_shift) + wire_area.stacks. */
struct wire_own {
	uint64_t alt_lo,
		alt_hi; /* the thread's signal stack, as last seen; alt_hi WIRE_ALT_UNKNOWN: it may have one */
	uint64_t frame; /* compiled code's own: lowest byte of the running program's stack */
	uint64_t entry; /* address of the struct wire_thread_entry that leads to the slot; valid while holder != 0 */
	uint64_t regs;               /* address of struct pt_regs of the firing, 0 none */
	uint64_t stack_lo, stack_hi; /* readable range around rsp, looked up on the slow path */
	uint64_t range_lo, range_hi; /* the last other readable range met */
	uint32_t range_version;      /* wire_process.version when range_lo, range_hi were found */
	uint32_t checks; /* reads left until the agent looks again whether a fault would be survived */
	uint32_t unsafe; /* it would not: reads are system calls */
	uint32_t nested; /* firings skipped since the running one began */
	uint64_t key;    /* identity word */
	uint32_t holder; /* atomic: tid of the thread of this process that has the slot, 0 none has */
	uint32_t pid;    /* as its own pid namespace sees it */
	/* The tracer's, of slot 0: it fires an event of process `pid`, whose signals go to `pidfd`
	 * (-1: to nobody), because that number may be another process's by now. */
	uint32_t other;
	int32_t pidfd;
	uint64_t task; /* address of the thread's stand-in for struct task_struct, 0 none */
	uint64_t pad;
};
/* Programs then stay on the stack that the thread is on. */
#define WIRE_ALT_UNKNOWN (~0ull >> 1)

/* Where thunks look for a thread: one entry, no probing. Other threads read it while it is written:
 * `thread` before `key`, and an entry whose thread lives is never given to another (the second of
 * two that collide takes the slow path). A thunk goes on only where `rsp` is negative, which a free
 * entry's is not. */
struct wire_thread_entry {
	uint64_t key;
	uint64_t thread; /* address of struct wire_thread */
	/* While a probe fires, the stack pointer of its thunk, at most WIRE_THUNK_BELOW bytes under
	 * the program's own (nested firings keep it); WIRE_IDLE: none does; 0: the thread is not
	 * known. */
	uint64_t rsp;
	uint64_t pad;
};
#define WIRE_IDLE (~0ull)
/* Red zone, return address, rax, flags, r12, r11, r10. A signal's frame is larger. */
enum { WIRE_THUNK_BELOW = 128 + 6 * 8, WIRE_ENTRY_SHIFT = 5 };

/* What the tracer knows of the thread in a slot: in the facts, for processes whose agent makes no
 * system calls (wire_kept.quiet). It counts when process and tid are those that the agent knows. */
struct wire_told {
	uint32_t process; /* index + 1 in wire_area.processes, 0 nothing is known */
	uint32_t tid;     /* written last, cleared first */
	uint32_t gone;    /* it has ended */
	uint32_t masked;  /* it has SIGSEGV or SIGBUS blocked */
};
#define WIRE_THREAD_MIX 0x9e3779b97f4a7c15ull

enum wire_process_state { WIRE_PROCESS_FREE, WIRE_PROCESS_TRACED, WIRE_PROCESS_GONE };
struct wire_range {
	uint64_t lo, hi;
};
/* In the facts. The tracer numbers processes that it attaches to from 1 on; forked children number
 * themselves, from WIRE_PROCESSES_MAX - 1 down. */
struct wire_process {
	uint32_t state; /* enum wire_process_state, atomic */
	uint32_t pid; /* host's view; 0: a child that the tracer has not looked at, struct wire_said has what it says */
	uint32_t own_pid; /* its own namespace's view */
	uint32_t uid, gid, ppid;
	uint32_t nranges; /* tracer's list of readable mappings; odd `version`: being written */
	uint32_t version;
	uint64_t ranges; /* address of struct wire_range[WIRE_RANGES_MAX] */
	uint64_t task; /* address of the stand-in for its struct task_struct (kernel layout), 0 none */
	uint64_t ranges_time; /* CLOCK_MONOTONIC ns: when `ranges` was read; stored last */
	uint64_t started; /* of /proc/PID/stat: tells it from a later process with the same number */
};
/* What a process says itself: in shared memory, by the same number. */
struct wire_said {
	uint32_t own_pid; /* a forked child's, written last; 0: look away */
	uint32_t uid, gid, ppid;
	uint32_t ranges_wanted; /* an address was in no range */
	uint32_t exit_tid;      /* atomic: the thread that told of the process's end, 0 none did */
	uint32_t execs;         /* atomic: calls of execve that have not returned */
	uint32_t quiet;         /* its wire_kept.quiet is set */
	uint32_t unwind_asked;  /* WIRE_UNWIND_ASK_*: requested since its list was written */
	uint32_t pad;
};

/* Where members of the kernel's structures lie that the agent writes; bytes. */
struct wire_task_layout {
	uint32_t task_size, signal_size,
		mm_size; /* multiples of 8; task_size 0: there are no stand-ins of threads */
	uint32_t pid, tgid, comm, mm, signal, real_parent, exit_code; /* in struct task_struct */
	uint32_t nr_threads, live;                                    /* in struct signal_struct */
};
/* What programs take addresses from. In each thread's slot at wire_area.event_at; where other
 * processes have the slots too (wire_area.together), in private memory, WIRE_EVENT_BELOW bytes
 * under each struct wire_own. Then, twice (the thread's own, another's), a task_struct, a
 * signal_struct and an mm_struct. */
enum { WIRE_EVENT_WORDS = 8 };
struct wire_event {
	uint64_t word[WIRE_EVENT_WORDS]; /* the tracepoint's arguments */
};
/* Above the page that WIRE_KEPT takes of slot 0's. */
enum {
	WIRE_EVENT_BELOW = WIRE_STACK_STRIDE - 4096 - 128 /* sizeof(struct wire_own) */,
	WIRE_EVENT_MAX = WIRE_EVENT_BELOW - WIRE_PROBE_STACK - 4096,
};
/* In each thread's slot at wire_area.wanted. */
struct wire_wanted {
	uint64_t answer; /* the tracer's: address of the task_struct asked for, one of wire_area.rooms; 0 not known */
	uint32_t tid; /* atomic: whose task_struct is asked for, ~0 nobody's; 0: answered */
	uint32_t pad;
};
/* Who asks adds one to `asked`, wakes the tracer and waits until `answered` has got there: a fifth
 * of a second at most, and not at all when nobody answers. */
struct wire_ask {
	uint32_t asked; /* atomic, futex */
	uint32_t on;    /* somebody answers */
	uint8_t pad[56];
	uint32_t answered; /* futex: `asked` as it was when all was done for it */
	uint8_t pad1[60];
};

/* The signals that may be ours; an action as rt_sigaction(2) has it. */
enum wire_signal { WIRE_SIGNAL_SEGV, WIRE_SIGNAL_BUS, WIRE_SIGNAL_TRAP, WIRE_SIGNALS };
struct wire_sigaction {
	uint64_t handler, flags, restorer, mask;
};

/* Process-private memory, all zero in a forked child. */
struct wire_private {
	uint64_t ready; /* 0: not set up (a forked child): slow path */
	uint32_t process; /* index in wire_area.processes; 0 in a child that is not traced: it has no shared memory */
	uint32_t off; /* this process is not traced: programs do not run */
	uint64_t signals; /* bit n: our handler of WIRE_SIGNAL_n is installed, action[n] is the program's own */
	struct wire_sigaction action[WIRE_SIGNALS];
	uint64_t no_slot;        /* agent: ns until which no slot is looked for */
	uint32_t next_slot, pad; /* agent: where it looks next for one of a thread that has died */
	uint64_t rules_version;  /* wire_area.unwind_version that rules[] is of */
	uint64_t claims
		[WIRE_CLAIMS]; /* agent: keys of threads that look for a slot without blocking signals, 0 free */
	uint32_t pid, pad1; /* agent: of a forked child, what it calls itself */
	uint64_t spare[37];
	struct wire_thread_entry threads[WIRE_THREAD_HASH];
	struct wire_thread_entry self; /* the tracer's: of slot 0, which nobody looks for */
	uint64_t rules
		[WIRE_RULES]; /* stacks met an address before: address << 16 | number of its unwind rule; 0 free */
};

/* What a forked child must know too: the page at WIRE_KEPT of the private mapping, where the guard
 * page of slot 0's probe stack would be (that slot is the tracer's). It is not wiped, but copied as
 * any memory is. The tracer fills traps, pid and no_vm_read; the handlers are put in by the agent's
 * `guard`, or by the tracer, which then fills signals and action here and in wire_private. Where
 * the program has a handler, the kernel gets its mask and its flags without SA_RESETHAND; else an
 * empty mask and no flags; always SA_SIGINFO | SA_RESTORER. */
struct wire_trap {
	uint64_t site, code; /* code: where to go on, the stub's first instruction */
};
struct wire_kept {
	uint64_t signals; /* as wire_private.signals and action */
	struct wire_sigaction action[WIRE_SIGNALS];
	uint64_t traps, ntraps; /* address of struct wire_trap[], by site */
	uint32_t pid;        /* of wire_undo records: the process that was patched; 0 not known */
	uint32_t no_vm_read; /* process_vm_readv is refused (the tracer sets it where seccomp filters) */
	uint64_t lock;       /* of action[]: own pid << 32 | tid */
	uint32_t sequence, pad; /* odd: action[] is being written */
	/* A seccomp filter looks at system calls of the process, or is about to: the agent makes
	 * none, for what its filter does not expect may end it. Never cleared. Set by the agent in
	 * front of seccomp(2) and prctl(2), by the tracer where it finds a filter. */
	uint32_t quiet;
	uint32_t busy;     /* atomic: threads that make system calls of ours outside of a firing */
	uint32_t process;  /* as wire_private.process */
	uint32_t fsgsbase; /* rdfsbase may be used */
	/* agent: how often wire_process.ranges was waited for in vain, one after the other */
	uint32_t list_vain;
	/* agent: this child, or its parent, is of another pid namespace than the tracer */
	uint32_t apart;
	char comm[16]; /* a thread's name where it cannot be asked for: that of the one that set `quiet` */
};
/* A page that is mapped while an attach opens its files: from base. */
#define WIRE_MAIL (WIRE_BASE_STEP - 0x10000)
#define WIRE_KEPT ((sizeof(struct wire_private) + 4095) & ~4095ull) /* from the private mapping */

/* How a thread is told from others. */
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
	uint32_t pid; /* process it is in (host's view); the upper 10 bits count the programs it has executed before */
	uint8_t len, data, pad[2]; /* data: no text, but the semaphore of a USDT probe: a count */
	uint64_t stub;             /* its first byte of code, 0 none (a trap) */
	uint32_t stub_len;         /* bytes from `stub` to its end */
	uint32_t pad1;
	uint8_t before[WIRE_SITE_MAX], after[WIRE_SITE_MAX];
	uint16_t moved
		[WIRE_SITE_MAX]; /* offset from `stub` of the copy of the instruction at site + i, 0xffff: none begins there */
};
#define WIRE_UNDO_HOLD 0xeb, 0xfe /* jmp to itself: holds a thread until the site is whole again */

/* Names of the memfds, as /proc/PID/maps shows them behind "/memfd:". */
#define WIRE_MEMFD_PREFIX "descry-"
#define WIRE_MEMFD_CODE "descry-code"
#define WIRE_MEMFD_FACTS "descry-facts"
#define WIRE_MEMFD_SHARED "descry-shared"
#define WIRE_MEMFD_ISLAND "descry-island"

/* ns = base_ns + (tsc * mult >> 64), the product having 128 bits, the sum 64; it stays what it
 * is. */
struct wire_clock {
	uint64_t base_ns;
	uint64_t mult; /* 0: no usable TSC, the agent asks the kernel */
};

/* At the start of the facts. */
struct wire_area {
	uint64_t magic;
	uint32_t version, size_of_thread; /* WIRE_AREA_VERSION, thread_stride */
	uint64_t base;                    /* of the four mappings */
	uint64_t shared_size, code_size, private_size;
	uint64_t span; /* bytes from here to the end of the shared mapping: what programs may read */
	uint32_t tracer_pid, watchdog_pid;
	uint64_t heartbeat; /* CLOCK_MONOTONIC ns of the tracer's last sign of life; looked at on slow paths */
	uint64_t heartbeat_max; /* ns without one after which programs stop running; 0 never */
	uint32_t gen;           /* WIRE_GEN_RUNS | aggregation generation, 0 or 1 */
	uint32_t filtered; /* a traced process has filtered its system calls: so may children that are not traced */
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
	uint32_t process_count;   /* of those the tracer has numbered */
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
	uint64_t rooms;    /* address of the first of the stand-ins that the tracer answers with */
	uint32_t room_size, nrooms;
	struct wire_task_layout task;
	uint64_t bell; /* address of what threads that wait for the tracer look at, 0 none: its watchdog's */
	/* Processes may have each other's slots: children are followed, or several processes are
	 * named. One of them may come to have fewer rights than another. */
	uint64_t together;
	uint64_t unwinds; /* address of struct wire_unwind_process[WIRE_PROCESSES_MAX], 0 none */
};

/* At the start of the shared mapping. */
struct wire_common {
	uint64_t no_thread;   /* firings skipped: no slot free (atomic) */
	uint32_t child_count; /* forked children that have numbered themselves (atomic) */
	uint32_t pad[13];
	struct wire_ask ask;
};

/* --- the agent's blob --- */

/* A helper that the kernel has not got: the thread's CPU time in ns, never 0. */
enum { WIRE_HELPER_THREAD_TIME = 60000 };

/* Starts the code mapping. Helpers take eBPF's r1..r5 and, sixth, the struct wire_thread; they keep
 * the C ABI. */
#define WIRE_AGENT_ENTRIES(X) \
	X(thread, "(key) -> struct wire_thread or 0; the slow path of every thunk") \
	X(nested, \
	  "(struct wire_thread *, rsp) -> 1: run after all (the firing before was left by longjmp), 0: skip, counted") \
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
	X(send_signal, "helper 109") \
	X(send_signal_thread, "helper 117") \
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
	  "(insn): a program touched memory that is not its own; counted, the firing ends") \
	X(segv, "signal handler for SIGSEGV and SIGBUS") \
	X(sigaction, "rt_sigaction of the traced program, seen through ours") \
	X(int3, "signal handler for SIGTRAP") \
	X(heal, "() in a forked child: restores every patched site of it") \
	X(guard, \
	  "(on) in the target: puts in (bits WIRE_SIGNAL_n) or takes out (0) the handlers; 0 or -errno") \
	X(probe_write, "helper 36: dst, src, size") \
	X(restorer, \
	  "what sa_restorer of our handlers is, where the program's own action has none") \
	X(sigaction_site, \
	  "in place of a thunk, in front of a system call: rt_sigaction is done by `sigaction`, and skipped") \
	X(seccomp_site, \
	  "likewise: before seccomp or prctl puts in a filter, wire_kept.quiet is set") \
	X(prctl_entry, "the same at the entry of the C library's prctl") \
	X(syscall_entry, "the same at the entry of its syscall") \
	X(fork_site, \
	  "likewise, behind one that may make a process: a child without shared memory gets its own") \
	X(ustack, "d_ustack of bpf/") \
	X(stack_id, "d_stack_id of bpf/") \
	X(thread_time, "helper WIRE_HELPER_THREAD_TIME") \
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
_Static_assert(sizeof(struct wire_own) == 128, "above a probe stack");
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
