/* The in-process engine, inside: what its files share. Its front door is load/engine.h,
 * engine_inproc.
 *
 *	files.c   memory files, sealed
 *	area.c    memory: the mappings of wire/inproc.h here, maps and thread slots laid out
 *	identity.c  how threads are told from others
 *	prog.c    programs: linked, compiled, written to the code mapping; runs BEGIN, END, timers
 *	conflict.c  the kernel's uprobes where it has patched
 *	syscalls.c  where the process makes system calls
 *	sites.c   which instruction of which module each probe is, and how it can be patched
 *	islands.c  stubs
 *	attach.c  processes: the mappings put into them, text patched; and taken out again
 *	extend.c  the same for modules that come later
 *	records.c  undo records
 *	life.c    children, executed programs
 *	sample.c  profile-N
 *	bell.c    how a process calls the tracer
 *	loads.c   libraries that come and go
 *	execs.c   programs that are executed
 *	events.c  provider proc
 *	guard.c   fault handlers
 *	seccomp.c processes that filter their system calls
 *	unwind.c  unwind tables
 *	owner.c   whose a process is
 *	forging.c  actions that a process could choose
 *	shared.c  what the tracer reads in memory that the processes write
 *	agg.c     aggregations: generations flipped, summed over threads
 *	engine.c  the operations
 */
#ifndef DESCRY_LOAD_INPROC_H
#define DESCRY_LOAD_INPROC_H

#include "base/hash.h"
#include "base/mem.h"
#include "compile/jit/jit.h"
#include "load/engine.h"
#include "load/inproc/pace.h"
#include "load/inproc/files.h"
#include "load/inproc/shared.h"
#include "load/inproc/owner.h"
#include "load/link.h"
#include "program/symbol/symbol.h"
#include "program/target/target.h"
#include "program/text/text.h"
#include "wire/inproc.h"
#include "wire/syscall.h"

enum {
	INPROC_RING_MAX = 1 << 20, /* bytes of a thread's data ring */
	INPROC_CONTROL_RING = 1 << 16,
	INPROC_THREADS = 512,
	INPROC_UNDO_MAX = 1 << 20, /* patched sites of all processes */
	INPROC_SIGACTION = 0x7fffffff,
	INPROC_LOADS = 0x7ffffffe,
	INPROC_ERRNO = 0x7ffffffd,
	INPROC_EXECS = 0x7ffffffc,
	INPROC_SECCOMP = 0x7ffffffb,
	INPROC_PRCTL = 0x7ffffffa,
	INPROC_SYSCALL = 0x7ffffff9,
	INPROC_LATER = 1 << 17, /* bytes of shared memory for what comes after load */
};

struct inproc_prog {
	struct linked linked;
	struct jit_code code;
	uint64_t addr; /* where it runs */
	uint64_t runs; /* counted by the tracer: BEGIN, END, timers */
};

struct inproc_timer {
	uint32_t prog, probe;
	uint64_t next, period; /* CLOCK_MONOTONIC ns */
};

/* An aggregation's values as far as they were taken out of the threads' tables. */
struct inproc_entry {
	void *key; /* NULL: an aggregation without keys */
	uint64_t *words;
};
struct inproc_store {
	VEC(struct inproc_entry) entries; /* words NULL: deleted */
	VEC(uint32_t) unused;
	struct hash index; /* key -> number + 1 */
};

struct inproc_point {
	uint64_t addr; /* link-time address of the probed instruction */
	enum wire_stub_kind kind;
	uint64_t shown; /* link-time address that programs see: where a uprobe would be */
	uint32_t probe; /* index in image.probes; INPROC_SIGACTION: the agent's sigaction_site; INPROC_LOADS, INPROC_EXECS:
				 bell.c's; INPROC_SECCOMP, INPROC_PRCTL, INPROC_SYSCALL: seccomp.c's; INPROC_ERRNO: none, see events.c */
	uint32_t prog;  /* index in image.progs: one of the probe's */
	int32_t number; /* WIRE_STUB_SYSRET: of the system call, -1 not known */
};
/* Bytes that are displaced in one process, and the probes that fire there. */
struct inproc_site {
	struct text_site text;
	uint64_t bias;
	uint32_t module; /* index in inproc_process.modules */
	VEC(struct inproc_point) points;
	uint64_t stub, code_at; /* addresses in the target */
	uint32_t stub_len;
	uint16_t moved[TEXT_SITE_MAX];
};

/* Where a module has been: what its stubs there are, and the records of its sites, is never changed
 * again. A forked child may have the module there still, and its jumps into those stubs. */
struct inproc_place {
	uint64_t bias, island;
	uint32_t first_undo;
};
struct inproc_module {
	struct object *object;
	struct text *text;                       /* of inproc_engine.texts */
	uint64_t bias, lo, hi;                   /* run-time addresses of its text */
	uint64_t island, island_size, island_at; /* island_at: offset in the memory file */
	uint64_t island_bias;                    /* the module's, when the stubs were written */
	uint8_t *island_mem;                     /* the tracer's view; NULL: none */
	uint32_t first_site, nsites;
	uint32_t first_undo; /* of its sites' records in wire_area.undo, if it has `records` */
	bool records;
	bool fresh;   /* nothing has been patched by these records yet: they may be written anew */
	bool enabled; /* patched, and its records say so */
	bool gone;    /* dlclose() took it out of the process: bias, lo and hi are where it was */
	uint64_t dev; /* of its file */
	uint64_t inode;
	VEC(struct inproc_place) places; /* at which it was enabled */
	uint64_t loads_state; /* run-time address of struct r_debug.r_state, 0: not the dynamic linker, or not asked for */
	bool execs; /* its execve() is seen */
};
/* Of a USDT probe that looks whether it is wanted: a count in the target's memory, or an
 * instruction that answers. */
struct inproc_semaphore {
	uint64_t addr;                          /* link-time */
	const struct object_question *question; /* NULL: a count */
	uint32_t module;
	uint32_t undo; /* its record in wire_area.undo, if it has one */
	bool record;
};

struct inproc_process {
	pid_t pid;
	pid_t root;     /* the named process that it is, or descends from */
	uint32_t index; /* in wire_area.processes */
	bool planned;   /* modules and sites are filled */
	struct inproc_program {
		uint64_t started;            /* procdir_start() */
		uint64_t exe_dev, exe_inode; /* 0: not known */
	} program;                           /* that was planned for */
	bool attached, child;                /* child: forked by a traced process, with its text */
	bool stays; /* an attach that failed could not be taken back: a part of it is still there */
	int exec_tries; /* looks left for the libraries of a program it has executed */
	VEC(struct inproc_module) modules;
	VEC(struct inproc_site) sites; /* by module, then address */
	VEC(struct inproc_semaphore) semaphores;
	bool *waiting;   /* as image.probes: its file is not mapped */
	bool hooked;     /* the dynamic linker's calls of _dl_debug_state() are seen */
	bool unsampled;  /* profile probes do not fire */
	bool complained; /* of libraries that could not be traced */
	bool looked;     /* its mappings have been looked at since it is attached */
	int island_fd;
	uint64_t island_used;
	VEC(struct control_range) left; /* islands of where modules were, to be unmapped */
	uint32_t execs;                 /* programs executed before this one */
	bool filtered; /* a seccomp filter looks at its system calls, if only one that descry has, too */
	bool quiet; /* one of its own does: the agent makes none */
	bool strict; /* seccomp's strict mode: a thread has no time stamp counter, what our handler makes up for */
	uint64_t filter_look; /* CLOCK_MONOTONIC ns: when its threads are looked at for that */
	uint32_t filter_next;
	bool served; /* ptrace(2) is forbidden: after its start it cannot be stopped (program/target/served.c) */
	struct inproc_watch *watch; /* events.c: its threads, as seen last; NULL not yet */
	bool ended;                 /* and that has fired */
	bool guarded; /* its rt_sigaction(2) is seen: our handlers can be put in front of its own */
	int mem; /* /proc/PID/mem, opened when it was attached: the memory of that program, not of one executed later; -1 none */
};

static inline struct inproc_process inproc_process_of(pid_t pid)
{
	return (struct inproc_process){ .pid = pid, .root = pid, .island_fd = -1, .mem = -1 };
}

struct inproc_text {
	struct object *object;
	struct text *text;
};
/* A thread that is followed into the program it executes. */
struct inproc_exec {
	pid_t tid, pid;
	uint64_t until; /* CLOCK_MONOTONIC ns: then it has failed */
};

/* A process that traced ones descend from; its stand-in (task.c). */
struct inproc_ancestor {
	pid_t pid;
	uint64_t started; /* procdir_start() */
	uint64_t task;
};

/* Addresses not given out yet. */
struct inproc_room {
	uint64_t at, end;
};

struct inproc_engine {
	struct engine base;
	bool measure;
	struct inproc_files files;
	uint64_t addr; /* of the mappings: wire_area.base */
	uint8_t *code; /* writable view of the code mapping */
	uint64_t code_used;
	struct wire_area *area;       /* the facts: what only the tracer writes */
	struct wire_common *common;   /* shared memory: what every process may write */
	struct wire_private *private; /* the tracer's own */
	struct wire_map *maps;        /* facts; as image.maps */
	uint64_t threads, thread_stride, shared_size;
	struct wire_process *list; /* facts; WIRE_PROCESSES_MAX */
	struct wire_said *said;    /* shared; likewise */
	struct wire_range *ranges; /* facts; WIRE_RANGES_MAX of each process */
	struct wire_undo *undo;    /* facts; INPROC_UNDO_MAX */
	uint32_t nundo;
	uint32_t gen;              /* of aggregations: wire_area.gen */
	bool late[INPROC_THREADS]; /* the slot's thread was still in the generation before */
	bool any_user; /* `user` is that of the process traced last: none before it had fewer rights */
	struct owner user;
	bool slow_barrier;        /* membarrier(2)'s fast one does not reach every process */
	struct wire_thread *self; /* the tracer's thread slot */
	struct wire_own *own;     /* ... and its private words */
	struct inproc_room facts, shared; /* what is left of each */
	uint64_t thread_used;             /* bytes of a slot laid out so far */
	struct inproc_prog *progs;        /* as image.progs */
	VEC(struct inproc_timer) timers;
	int timer_fd;
	int nap_ms;                  /* how long to wait before looking into the rings again */
	struct inproc_store *stores; /* as image.aggs */
	uint64_t store_bytes,
		store_max; /* what they take, and may take: threads make new keys as long as they like */
	uint64_t unstored; /* updates of keys for which there was no room */
	VEC(struct inproc_process) processes;
	VEC(struct inproc_text) texts;
	enum engine_scope scope;
	const struct probe_target *targets;
	uint32_t ntargets;
	VEC(struct control *) held; /* targets under the caller's control until attach() is done */
	struct symbols *symbols;
	struct shared_copy copy;
	uint64_t tails
		[2]
		[INPROC_THREADS]; /* of rings: how far they were read; of MAP_CONTROL, of MAP_DATA */
	uint64_t forged;          /* records in rings that no program has written */
	bool contained; /* a process that has our memory is in another pid name space: it reads all that is told there */
	bool forgeable; /* the program has actions that a process could have done with arguments of its choice: forging.c */
	bool estranged; /* a process that has our memory is not descry's own any more: such actions are not done */
	struct engine_counters counters;
	struct inproc_samples *samples; /* NULL: no profile probes */
	struct inproc_bell *bell;       /* in shared memory; NULL: none */
	uint32_t bell_seen;
	struct pace pace; /* of rounds that bells begin */
	uint32_t searches; /* of /proc, for numbers that processes have given: so many are left in this round */
	bool loads_asked;    /* libraries have come or gone somewhere */
	uint64_t loads_next; /* CLOCK_MONOTONIC ns: when mappings are looked at unasked */
	VEC(struct inproc_exec) execs;
	struct control *
		caught; /* the process that process_enter() is for, stopped, its last stop; NULL: it runs */
	VEC(struct inproc_ancestor) ancestors; /* that are not traced and have stand-ins */
	struct inproc_events *events;          /* NULL: no probes of provider proc */
	uint64_t event_at;                     /* wire_area.event */
	struct inproc_unwind *unwind;          /* NULL: the image takes no user stacks */
	bool *placed;                          /* as image.probes: it fires somewhere */
	struct inproc_refusal {
		const char *reason; /* in mode; NULL: not refused */
		char *mode;         /* "refused: reason" */
	} * refused;                /* likewise */
	bool *left_out;             /* likewise: refused, though it could fire */
	uint32_t nrefused;          /* probes that could not be placed, though they could fire */
	int watchdog;               /* its pidfd or -1 */
	bool unrestored;            /* a process could not be restored */
};

/* area.c */
struct err *area_create(struct inproc_engine *e, const struct image *img);
void area_free(struct inproc_engine *e);
/* A free stretch of the facts, or of the shared mapping, zero, 64-byte aligned; its address (the
 * same in every process). 0: there is none. */
uint64_t area_alloc(struct inproc_engine *e, uint64_t size);
uint64_t area_alloc_shared(struct inproc_engine *e, uint64_t size);
/* A piece of each thread's slot: its offset. While the area is laid out. */
uint64_t area_in_slot(struct inproc_engine *e, uint64_t size);
struct wire_thread *area_thread(const struct inproc_engine *e, uint32_t slot);
uint64_t area_private_size(void);

struct plan; /* of sites.c */

static inline bool inproc_is_syscall(enum attach_kind k)
{
	return k == ATTACH_SYSCALL_ENTRY || k == ATTACH_SYSCALL_RETURN;
}

/* Are probes of a named process also for what it starts? */
static inline bool inproc_whole_families(const struct inproc_engine *e)
{
	return e->base.image->options && opt_on(e->base.image->options, OPT_FOLLOW);
}

/* identity.c: how threads of the targets are told apart: wire_area.identity and id_disp. */
void identity_find(struct inproc_engine *e);
/* musl's library and dynamic linker are one file, which need not have a name of its own. */
bool identity_is_musl(struct object *o);
/* Does a program that was executed later tell its threads apart that way too? */
struct err *identity_check(struct inproc_engine *e, pid_t pid);
/* Can this thread be told yet? Before the dynamic linker has set up its word, a probe would end the
 * program. */
bool identity_is_set(const struct inproc_engine *e, const struct user_regs_struct *regs);

/* task.c: a stand-in for the process's struct task_struct; 0 where there is no room for one. */
uint64_t area_task(struct inproc_engine *e, pid_t pid);
/* The one that stands for a parent, with its own parents behind it: a traced process's own. 0:
 * there is no room. */
uint64_t area_parent(struct inproc_engine *e, pid_t pid);

/* prog.c */
struct err *progs_compile(struct inproc_engine *e);
struct err *progs_print(FILE *out, const struct image *img); /* engine_type.print */
void progs_free(struct inproc_engine *e);
struct err *prog_run(struct inproc_engine *e, uint32_t prog, uint64_t cookie);
enum { INPROC_CONTEXT = 21 }; /* words: as struct pt_regs has */
void prog_run_with(struct inproc_engine *e, uint32_t prog, uint64_t cookie,
		   const uint64_t context[INPROC_CONTEXT]);
struct err *timers_arm(struct inproc_engine *e);
void timers_run(struct inproc_engine *e);
void timers_stop(struct inproc_engine *e);

/* unwind.c */
struct err *unwind_start(struct inproc_engine *e);
void unwind_add(struct inproc_engine *e, pid_t pid);
void unwind_refresh(struct inproc_engine *e);
void unwind_stop(struct inproc_engine *e);

/* guard.c: fault handlers in the process, so that reading its memory is a plain load. */
/* Do programs of the image read memory of the process? */
bool guard_wanted(const struct inproc_engine *e);
/* Handlers for SIGSEGV and SIGBUS, the program's own behind them. While it is stopped, mapped. */
struct err *guard_install(struct inproc_engine *e, const struct inproc_process *p,
			  struct control *c);

/* seccomp.c */
/* Can a process be traced without system calls of the agent, if it must be? Fills p->filtered and
 * p->quiet. */
struct err *seccomp_check(const struct inproc_engine *e, struct inproc_process *p);
/* The same of a stopped process that may have put a filter in since. */
struct err *seccomp_check_again(const struct inproc_engine *e, struct inproc_process *p);
/* The same, where another engine may be had. */
struct err *seccomp_plan(const struct inproc_engine *e, struct inproc_process *p);
/* What the agent keeps in the process, at first. */
struct wire_kept seccomp_kept(const struct inproc_process *p);
/* For sites_plan(): places where a filter may be put in. In a C library's functions; at a system
 * call of a program without one. */
struct err *seccomp_functions(struct inproc_process *p, struct plan *pl, uint32_t module);
void seccomp_site(struct plan *pl, uint32_t module, const struct text_syscall *s);
/* Looks whether it filters, and tells its threads what they cannot ask; call it now and then.
 * attached: processes that are. */
void seccomp_look(struct inproc_engine *e, struct inproc_process *p, uint32_t attached);
/* Are there processes that wait for the tracer to tell them something? */
bool seccomp_any(const struct inproc_engine *e);

/* life.c: children and executed programs; call it now and then. */
void processes_look(struct inproc_engine *e);
/* Are our code and our memory in the process now? Not once it has executed another program, or
 * somebody has undone what we did; then nothing in it may be made to lead there. Holds on only
 * while a thread of it is stopped. */
bool process_holds(const struct inproc_engine *e, pid_t pid);
/* The process, which may not be known yet, is stopped in a program that it has just executed:
 * traced from there. */
void process_executed(struct inproc_engine *e, pid_t pid, struct control *c);
/* It has executed a program whose libraries are not there yet, and runs: it is attached to when
 * they are. */
void process_slow(struct inproc_engine *e, pid_t pid);
/* What it has mapped stays known when it has ended, if the program prints names of its
 * addresses. */
void process_remember(struct inproc_engine *e, pid_t pid);
/* Opens p->mem: it is attached, or about to go on as such. */
void process_open(struct inproc_process *p);
/* Is our shared memory mapped in it? */
bool process_has_area(const struct inproc_engine *e, pid_t pid);
/* Is our private memory still in it? False: it has executed another program. */
bool process_is_ours(const struct inproc_engine *e, pid_t pid);
/* Children on the list that are new; how many, those that were not looked for in this round
 * included. */
uint32_t processes_adopt(struct inproc_engine *e);
/* What processes say of themselves is looked for so often, until this is called again. */
void processes_round(struct inproc_engine *e);

/* sample.c: after progs_compile() */
struct err *samples_start(struct inproc_engine *e);
bool samples_can(const struct probe *p);
/* For sites_plan(): is it a process that can be sampled? */
void samples_plan(struct inproc_engine *e, struct inproc_process *p, const struct mappings *maps);
/* The timer of a profile probe: threads that are due fire. */
void samples_take(struct inproc_engine *e, uint32_t prog, uint32_t probe, uint64_t period);
/* Is no thread of the stopped process on its way through a sample, with an address of the program
 * that is not in its registers? */
bool samples_quiet(const struct inproc_engine *e, struct control *c);
void samples_stop(struct inproc_engine *e);

/* bell.c: what threads of traced processes and the tracer tell each other. */
struct inproc_ask {
	uint32_t what; /* atomic. BELL_LOADS, or the thread's id in its own name space: it executes a program; 0 not written */
	uint32_t pad;
	uint64_t arg; /* first argument of the function: of execve(2) the path */
};
enum { BELL_LOADS = 0x7fffffff, BELL_ASKS = 64 };
struct inproc_bell {
	uint32_t asked; /* atomic, futex */
	uint32_t on;    /* somebody answers */
	uint8_t pad[56];
	uint32_t answered; /* futex: `asked` as it was when all was done for it */
	uint8_t pad1[60];
	struct inproc_ask asks[BELL_ASKS]; /* the nth at n % BELL_ASKS */
};
/* False: there is no room for it. */
bool bell_hang(struct inproc_engine *e);
/* Code that a stub of INPROC_LOADS or INPROC_EXECS calls: written at `mem`, to run anywhere; at
 * most BELL_ROOM bytes. It rings while the uint64_t at armed is not 0 and the uint32_t at quiet is
 * 0. what: as in struct inproc_ask, 0: the thread's id. */
enum { BELL_ROOM = 384, BELL_MS = 1500 };
void bell_code(const struct inproc_engine *e, uint64_t armed, uint64_t quiet, uint32_t what,
	       uint8_t *mem);
/* Waits for what poll() would, or until somebody asks. */
void bell_wait(struct inproc_engine *e, int timeout_ms);
bool bell_rings(const struct inproc_engine *e);
/* What was asked goes to loads_look() and execs_asked(); when that is done it is answered. */
void bell_take(struct inproc_engine *e);
void bell_answer(struct inproc_engine *e);
/* Nobody answers any more: lets all go on that wait. */
void bell_silence(struct inproc_bell *b);
/* Nobody is to wait for us any more. */
void bell_stop(struct inproc_engine *e);

/* loads.c */
/* For sites_plan(): the place in the dynamic linker, when libraries may come or go that matter. */
struct err *loads_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* Can this object not go away while the program runs? */
bool loads_stays(struct object *o);
/* Probes put into libraries that have come, forgotten in those that have gone; call it now and
 * then. */
void loads_look(struct inproc_engine *e);

/* execs.c: threads that are about to execute another program, and are followed into it. */
/* For sites_plan(): the place in the C library. */
struct err *execs_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* A thread (its number in its own name space) has come there, with this path. */
void execs_asked(struct inproc_engine *e, pid_t own_tid, uint64_t path);
/* Those that have executed it are traced again; stays with the others for some milliseconds. Call
 * it often. */
void execs_look(struct inproc_engine *e);
/* Is a thread of the process followed? Then it cannot be stopped otherwise. */
bool execs_pending(const struct inproc_engine *e, pid_t pid);
void execs_stop(struct inproc_engine *e);

/* events.c */
bool events_can(const struct probe *p);
/* The nth kind of stubs that the probe needs, and at which system calls. False: no more. */
bool events_calls(const struct probe *p, uint32_t n, enum wire_stub_kind *ret_kind,
		  uint64_t ret_bits[WIRE_SYSCALL_MAX / 64]);
/* Is it the program that keeps what `errno` is in user code? It runs behind every system call, and
 * has no probes. */
bool events_is_errno(const struct image_prog *p);
/* Bits: kinds of stubs (from WIRE_STUB_EVENTS) that the program is for. */
uint32_t events_of(const struct image *img, uint32_t prog);
/* Room in the slots, when there are probes that need it; while the area is laid out. */
struct err *events_lay_out(struct inproc_engine *e, const struct image *img);
void events_free(struct inproc_engine *e);
/* Threads that wait for an answer get it. */
void events_answer(struct inproc_engine *e);
/* A futex that is woken when one does, and its value as seen last; from now on they may wait. NULL:
 * none will. */
uint32_t *events_bell(struct inproc_engine *e, uint32_t *ret_seen);
void events_stop(struct inproc_engine *e);
/* Stays, for some milliseconds, with processes that are about to execute another program. */
void events_hurry(struct inproc_engine *e);
/* It has executed another program; before what was known of it is forgotten. */
void events_exec(struct inproc_engine *e, struct inproc_process *p);
/* The same for a child that was not known: it was made by vfork(2), and nothing of it has fired. */
void events_exec_first(struct inproc_engine *e, pid_t pid);
/* Before it is patched: threads that are there. */
void events_begin(struct inproc_engine *e, struct inproc_process *p);
/* Now and then: threads that are there, or the ends of those that were. */
void events_watch(struct inproc_engine *e, struct inproc_process *p);
void events_forget(struct inproc_process *p);
/* A child that was to be followed, number `index` in the list, has ended before it was looked at,
 * if it has. */
void events_lost(struct inproc_engine *e, uint32_t index, pid_t pid);

/* forging.c */
/* While the program is loaded: may its actions be done for the processes that are named? */
struct err *forging_check(struct inproc_engine *e);
/* Before records are taken: has a traced process become a stranger since it was attached to? */
void forging_look(struct inproc_engine *e);
/* It is not attached any more, and lives: its memory may still be ours. */
void forging_left(struct inproc_engine *e, pid_t pid);
/* Is it a record whose actions are not done any more? */
bool forging_refuses(const struct inproc_engine *e, const struct wire_record *r);

/* agg.c */
void aggs_flip(struct inproc_engine *e);
struct err *aggs_read(struct inproc_engine *e, uint32_t agg,
		      void (*fn)(void *arg, const void *key, const uint64_t *values,
				 uint32_t ncpus),
		      void *arg);
struct err *aggs_delete(struct inproc_engine *e, uint32_t agg, const void *key,
			uint64_t *ret_values);
void aggs_store_free(struct inproc_engine *e);

/* sites.c: fills p->modules and p->sites; probes that cannot be placed become notes. */
struct err *sites_plan(struct inproc_engine *e, struct inproc_process *p);
char *sites_how(struct engine_scene *s, const struct probe *p,
		char **ret_note); /* engine_type.how */
struct err *sites_text(struct inproc_engine *e, struct object *o, struct text **ret);
/* Is a file that the probes are in mapped in the process? */
bool sites_any(struct inproc_engine *e, pid_t pid);
/* For syscalls.c and loads.c: the module of an executable mapping; a site with one point of it. */
/* Once more, for probes that p is waiting for; fills *late, a process of its own. */
struct err *sites_plan_late(struct inproc_engine *e, struct inproc_process *p,
			    struct inproc_process *late);
struct err *plan_module(struct plan *pl, uint32_t map, uint32_t *ret);
void plan_site(struct plan *pl, uint32_t module, const struct text_site *s,
	       const struct inproc_point *p);

/* syscalls.c: what is there for sites_plan() to place; notes about what is not. */
struct err *syscalls_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
			  const struct mappings *maps);
void sites_free(struct inproc_process *p);

/* attach.c */
/* Whose undo records: a child of the program before has those of that one, at addresses that may be
 * the same. */
static inline pid_t inproc_undo_id(const struct inproc_process *p)
{
	return (pid_t)((uint32_t)p->pid | (p->execs & 0x1ff)
						  << 22); /* Linux: pids are below 1 << 22 */
}
/* Probes put into modules of a process that is attached: those that are there and not enabled. */
struct err *process_extend(struct inproc_engine *e, struct inproc_process *p);
/* The module's text is gone, or it has not been patched after all. Records that a forked child may
 * need stay. */
void process_forget(struct inproc_engine *e, struct inproc_process *p, uint32_t module);
/* Fills its entry in the area, number p->index. */
void process_describe(struct inproc_engine *e, const struct inproc_process *p);
/* Reads what of it can be read, for the agent. */
struct err *process_ranges(struct inproc_engine *e, struct inproc_process *p);
/* The nth number (0: the first; the last when there are fewer) behind `field` in /proc/PID/status;
 * 0 when there is none. */
enum { PROCESS_STATUS_LAST = 63 };
uint32_t process_status(pid_t pid, const char *field, int nth);
/* Plans only: may it be traced, and where are the probes. */
struct err *process_plan(struct inproc_engine *e, pid_t pid);
struct err *process_attach(struct inproc_engine *e, pid_t pid);
/* The same for e->processes.v[i], which is new, or is again. Uses up e->caught. */
struct err *process_enter(struct inproc_engine *e, uint32_t i);
void process_free(struct inproc_process *p);
struct err *process_detach(struct inproc_engine *e, struct inproc_process *p);

void inproc_note(struct inproc_engine *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of a process that is not seen, or not all of it: said even with -q. */
void inproc_blind(struct inproc_engine *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
