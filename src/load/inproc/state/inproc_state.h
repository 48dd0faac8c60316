/* Shared by the files of the in-process engine: the engine, its processes, their modules and
 * places. */
#ifndef DESCRY_LOAD_INPROC_STATE_H
#define DESCRY_LOAD_INPROC_STATE_H

#include "base/hash.h"
#include "base/mem.h"
#include "compile/jit/jit.h"
#include "load/engine.h"
#include "load/inproc/memory/inproc_files.h"
#include "load/inproc/memory/inproc_shared.h"
#include "load/inproc/memory/owner.h"
#include "load/inproc/memory/pace.h"
#include "load/link.h"
#include "load/timers.h"
#include "program/symbol/symbol.h"
#include "program/target/target.h"
#include "program/text/text.h"
#include "wire/inproc.h"
#include "wire/syscall.h"
#include "wire/wire_unwind.h"

enum {
	INPROC_RING = 1 << 20,      /* most bytes of a thread's data ring by default */
	INPROC_RING_MAX = 16 << 20, /* and when bufsize was set */
	INPROC_CONTROL_RING = 1 << 16,
	INPROC_THREADS = 512, /* slots at most: inproc_layout.nthreads */
	INPROC_THREADS_MIN = 4,
	INPROC_UNDO_MAX = 1 << 20, /* patched sites of all processes */
	INPROC_SIGACTION = 0x7fffffff,
	INPROC_LOADS = 0x7ffffffe,
	INPROC_ERRNO = 0x7ffffffd,
	INPROC_EXECS = 0x7ffffffc,
	INPROC_SECCOMP = 0x7ffffffb,
	INPROC_PRCTL = 0x7ffffffa,
	INPROC_SYSCALL = 0x7ffffff9,
	INPROC_FORK = 0x7ffffff8,
	INPROC_CLONE = 0x7ffffff7,
	INPROC_LATER = 1 << 17, /* bytes of shared memory for parts that are made after load() */
};

struct inproc_prog {
	struct linked linked;
	struct jit_code code;
	uint64_t addr; /* its address */
	uint64_t runs; /* counted by the tracer: BEGIN, END, timers */
	bool asleep;   /* its gates lead back (patch/islands.c) */
};

/* An aggregation's values, as far as the tracer has taken them out of the threads' tables. */
struct inproc_entry {
	void *key; /* NULL: an aggregation without keys */
	uint64_t *words;
};
struct inproc_store {
	VEC(struct inproc_entry) entries; /* words NULL: deleted */
	VEC(uint32_t) unused;
	struct hash index; /* key -> number + 1 */
	/* of a map that is not flipped: its words in each slot at the last look; NULL: none yet */
	uint64_t *seen;
};

struct inproc_point {
	uint64_t addr; /* link-time address of the probed instruction */
	enum wire_stub_kind kind;
	uint64_t shown; /* link-time address that programs see: the address of a uprobe there */
	uint32_t probe; /* index in image.probes; INPROC_SIGACTION: the agent's sigaction_site; INPROC_LOADS, INPROC_EXECS:
				 bell.c's; INPROC_SECCOMP, INPROC_PRCTL, INPROC_SYSCALL: agent/agent_seccomp.c's; INPROC_FORK: agent/fork.c's; INPROC_CLONE: agent/agent_clone.c's; INPROC_ERRNO: none, see proc_events.c */
	uint32_t prog;           /* index in image.progs: one of the probe's */
	int32_t number;          /* WIRE_STUB_SYSRET: of the system call, -1 not known */
	struct text_split split; /* as the site's of text.h */
};
/* Displaced bytes in one process, and the probes that fire there. */
struct inproc_site {
	struct text_site text;
	uint64_t bias;
	uint32_t module; /* index in inproc_process.modules */
	VEC(struct inproc_point) points;
	uint64_t stub, code_at; /* addresses in the target */
	uint32_t stub_len;
	uint16_t moved[TEXT_SITE_MAX];
	bool skipped; /* it was not patched, and this was said */
};

/* An earlier place of a module. Its stubs there, and the records of its sites, never change again,
 * because a forked child may still have the module there, with jumps into those stubs. */
struct inproc_place {
	uint64_t bias, island;
	uint32_t first_undo;
};
struct inproc_module {
	struct object *object;
	struct text *text;                       /* of inproc_placement.texts */
	uint64_t bias, lo, hi;                   /* run-time addresses of its text */
	uint64_t island, island_size, island_at; /* island_at: offset in the memory file */
	uint64_t island_bias;                    /* the module's bias when the stubs were written */
	uint8_t *island_mem;                     /* the tracer's view; NULL: none */
	uint32_t first_site, nsites;
	uint32_t first_undo; /* its sites' first record in wire_area.undo, if `records` */
	bool records;
	bool fresh;   /* no patch uses these records yet, so they may be rewritten */
	bool enabled; /* it is patched, and its records describe this */
	bool twice;   /* a second mapping of it was found, and said */
	bool changed; /* likewise a patch that the process has removed or overwritten */
	bool gone;    /* dlclose() has unmapped it; bias, lo and hi are its old place */
	uint64_t dev; /* of its file */
	uint64_t inode;
	VEC(struct inproc_place) places; /* places where it was enabled */
	/* run-time address of struct r_debug.r_state; 0: not the dynamic linker, or not needed */
	uint64_t loads_state;
	bool execs; /* its execve() has a bell */
};
/* The switch of a USDT probe that checks whether it is wanted: a count or a bool in the target's
 * memory, or an instruction that returns the answer. */
struct inproc_semaphore {
	uint64_t addr;                          /* link-time */
	const struct object_question *question; /* NULL: a count or a bool */
	bool is_bool;
	uint32_t module;
	uint32_t undo; /* its record in wire_area.undo, if it has one */
	bool record;
};

struct inproc_process {
	pid_t pid;
	/* the named process that this is, that it descends from, or that began in its program */
	pid_t root;
	bool taken;     /* of process_take(): it has the probes of `root` */
	uint32_t index; /* in wire_area.processes */
	bool planned;   /* modules and sites are filled */
	struct inproc_program {
		uint64_t started;            /* procdir_start() */
		uint64_t exe_dev, exe_inode; /* 0: not known */
	} program;                           /* the program that was planned for */
	bool attached, child;                /* child: forked by a traced process, with its text */
	bool stays; /* an attach failed and could not be undone, so a part of it is still there */
	int exec_tries; /* remaining looks for the libraries of a program that it has executed */
	VEC(struct inproc_module) modules;
	VEC(struct inproc_site) sites; /* by module, then address */
	VEC(struct inproc_semaphore) semaphores;
	bool *waiting;   /* as image.probes: the probe's file is not mapped yet */
	bool hooked;     /* the dynamic linker's calls of _dl_debug_state() have a bell */
	bool unsampled;  /* profile probes do not fire */
	bool complained; /* a note about libraries that could not be traced was added */
	bool looked;     /* its mappings have been read since the attach */
	int island_fd;
	uint64_t island_used;
	VEC(struct control_range) left; /* islands at old places of modules, to be unmapped */
	uint32_t execs;                 /* programs executed before this one */
	/* a seccomp filter checks its system calls, even if descry has the same filter */
	bool filtered;
	bool quiet; /* it has a filter of its own, so the agent makes no system calls */
	/* seccomp's strict mode: a thread has no time stamp counter, and the agent's handler
	 * replaces it */
	bool strict;
	bool no_counter; /* it has switched the counter off: the handler replaces it there, too */
	/* CLOCK_MONOTONIC ns: when its mappings may be read again, for stacks and for unwind tables
	 * (pace_next()) */
	uint64_t ranges_next, unwind_next;
	uint64_t twice_next; /* CLOCK_MONOTONIC ns: when twice_look() looks at it next, */
	uint32_t twice_ms;   /* after this pause */
	/* a child that was adopted, and whose mappings the tracer has not read yet */
	bool ranges_new, unwind_new;
	uint64_t filter_look; /* CLOCK_MONOTONIC ns of the next check of its threads for filters */
	uint32_t filter_next;
	/* ptrace(2) is forbidden, so it cannot be stopped after its start
	 * (program/target/served.c) */
	bool served;
	struct inproc_watch *watch; /* proc_events.c: its threads at the last look; NULL: not yet */
	bool ended;                 /* its end has fired */
	/* its calls of rt_sigaction(2) are patched, so the agent's handlers can stand in front of
	 * its own */
	bool guarded;
	/* /proc/PID/mem, opened at the attach: shows the memory of that program, not of one
	 * executed later; -1: none */
	int mem;
};

static inline struct inproc_process inproc_process_of(pid_t pid)
{
	return (struct inproc_process){ .pid = pid, .root = pid, .island_fd = -1, .mem = -1 };
}

struct inproc_text {
	struct object *object;
	struct text *text;
};
/* A thread that the tracer follows into the program that the thread executes. */
struct inproc_exec {
	pid_t tid, pid;
	uint64_t until; /* CLOCK_MONOTONIC ns after which the call has failed */
};

/* A process that traced ones descend from, and its stand-in (inproc_tasks.c). */
struct inproc_ancestor {
	pid_t pid;
	uint64_t started; /* procdir_start() */
	uint64_t task;
};

/* The way to walk the stacks of a process. Its place in wire_area.unwinds is known when the process
 * has an entry in the list of processes. */
struct inproc_walk {
	pid_t pid;
	struct wire_unwind_process how;
};

/* Addresses not given out yet. */
struct inproc_room {
	uint64_t at, end;
};

/* Free parts of the area's memory (area_room.c). */
struct inproc_layout {
	struct inproc_room facts, shared;
	uint64_t threads, thread_stride, shared_size;
	uint64_t thread_used; /* bytes of a slot laid out so far */
	uint64_t code_used;
	uint32_t nthreads;     /* slots */
	uint64_t reclaim_next; /* CLOCK_MONOTONIC ns: when inproc_reclaim.c looks again */
};

/* Values of aggregations, taken out of the threads' tables (inproc_aggs.c). */
struct inproc_aggs {
	struct inproc_store *stores; /* as image.aggs */
	uint64_t bytes,
		/* bytes that the stores take, and their limit, because threads may make any number
		 * of new keys */
		bytes_max;
	uint64_t unstored;         /* updates of keys for which there was no room */
	uint32_t gen;              /* generation: wire_area.gen */
	bool late[INPROC_THREADS]; /* the slot's thread still used the generation before */
	uint64_t end;  /* CLOCK_MONOTONIC ns: no waiting for threads after it; 0: still traced */
	bool reported; /* the threads that were late then */
	/* switches after the detach, since the tracer has run a program last (END) */
	uint32_t end_flips;
	bool slow_barrier; /* the fast command of membarrier(2) does not reach every process */
	struct shared_copy copy;
};

/* Timers, and the bell that a traced process rings (inproc_bells.c, patch/bell.c). */
struct inproc_bells {
	struct timers timers;
	int nap_ms;               /* wait before the next look into the rings */
	struct inproc_bell *bell; /* in shared memory; NULL: none */
	uint32_t seen;
	uint64_t unwritten; /* ns: since when request `seen` has been waited for; 0: it is not */
	struct pace pace;   /* for the rounds that bells begin */
};

/* Where probes fire, and the reasons of refusals (patch/sites.c). Arrays are as image.probes. */
struct inproc_placement {
	VEC(struct inproc_text) texts;
	bool *placed; /* it fires at some place */
	struct inproc_refusal {
		const char *reason; /* in mode; NULL: not refused */
		char *mode;         /* "refused: reason" */
	} * refused;
	bool *left_out;    /* refused, though it could fire */
	uint32_t nrefused; /* probes that could not be placed, though they could fire */
};

/* The processes that the caller names. */
struct inproc_named {
	enum engine_scope scope;
	const struct probe_target *targets;
	uint32_t ntargets;
	VEC(struct control *) held; /* targets under the caller's control until attach() is done */
	/* as in struct engine_setting */
	void (*executed)(void *arg, int pid, struct control *c);
	void *executed_arg;
};

/* Children and executed programs that appear while tracing (follow/). */
struct inproc_family {
	VEC(struct inproc_exec) execs;
	/* ancestors that are not traced and have stand-ins */
	VEC(struct inproc_ancestor) ancestors;
	/* The stopped process for process_enter(), at its last stop; NULL: the process runs. */
	struct control *caught;
	/* searches of /proc for a process's own number that this round may still make */
	uint32_t searches;
	/* answers of process_has_area() in this round, by struct process_life */
	struct hash *looked;
	uint64_t adopt_next; /* CLOCK_MONOTONIC ns before which no child is adopted; 0: at once */
	uint64_t oldest; /* procdir_start() of descry: of no child that begins while it traces is it less */
	uint64_t adopt_took; /* ns of the processor's time of the last processes_adopt(), for its
			      * children */
	/* indexes in `processes` at which the next rounds continue */
	uint32_t ranges_at, unwind_at;
	uint32_t learn_at;     /* the slot, likewise */
	uint32_t sharers_at;   /* the process, for leaving.c */
	uint64_t sharers_next; /* CLOCK_MONOTONIC ns of its next search */
	bool loads_asked;      /* a bell has reported that libraries have come or gone */
	uint64_t loads_next; /* CLOCK_MONOTONIC ns of the next reading of mappings without a bell */
};

/* Decides which records of traced processes may cause actions (follow/forging.c). */
struct inproc_trust {
	/* `user` is the owner of the process traced last; no process before it had fewer rights */
	bool any_user;
	struct owner user;
	/* a process of another pid namespace maps the shared memory and can read it */
	bool contained;
	bool forgeable;  /* the program has actions whose arguments a process could choose */
	bool privileged; /* a named process has rights that its children can give up */
	/* a process with the shared memory has got other rights, so such actions are refused */
	bool estranged;
	uint64_t forged; /* records in rings that no program has written */
};

struct inproc_engine {
	struct engine base;
	bool measure;
	struct inproc_files files;
	uint64_t addr;                /* of the mappings: wire_area.base */
	uint8_t *code;                /* writable view of the code mapping */
	struct wire_area *area;       /* the facts: what only the tracer writes */
	struct wire_common *common;   /* shared memory: what every process may write */
	struct wire_private *private; /* the tracer's own */
	struct wire_map *maps;        /* facts; as image.maps */
	struct wire_process *list;    /* facts; WIRE_PROCESSES_MAX */
	struct wire_said *said;       /* shared; likewise */
	struct wire_range *ranges;    /* facts; WIRE_RANGES_MAX of each process */
	struct wire_undo *undo;       /* facts; INPROC_UNDO_MAX */
	uint32_t nundo;
	struct wire_thread *self; /* the tracer's thread slot */
	struct wire_own *own;     /* ... and its private words */
	uint64_t wanted_at;       /* wire_area.wanted */
	uint64_t tails[2]
		      [INPROC_THREADS]; /* read positions in the rings of MAP_CONTROL and of MAP_DATA */
	struct inproc_prog *progs;      /* as image.progs */
	uint64_t *own_shared; /* jit_env.own_shared; NULL: variables are in shared memory */
	VEC(struct inproc_process) processes;
	struct symbols *symbols;
	struct languages *languages; /* the session's; NULL: none are wanted */
	struct inproc_layout room;
	struct inproc_aggs aggs;
	struct inproc_bells bells;
	struct inproc_placement placement;
	struct inproc_named named;
	struct inproc_family family;
	struct inproc_trust trust;
	struct engine_counters counters;
	struct inproc_samples *samples; /* NULL: no profile probes */
	struct inproc_events *events;   /* NULL: no probes of provider proc */
	struct inproc_unwind *unwind;   /* NULL: the image takes no user stacks */
	VEC(struct inproc_walk) walks;
	int watchdog;       /* its pidfd or -1 */
	bool unrestored;    /* a process could not be restored */
	uint64_t sweep_end; /* CLOCK_MONOTONIC ns: limit of processes_sweep(); 0: not begun */
};

static inline bool inproc_is_syscall(enum attach_kind k)
{
	return k == ATTACH_SYSCALL_ENTRY || k == ATTACH_SYSCALL_RETURN;
}

/* Returns true when probes of a named process also apply to its children. */
static inline bool inproc_whole_families(const struct inproc_engine *e)
{
	return e->base.image->options && opt_on(e->base.image->options, OPT_FOLLOW);
}

/* Returns the owner number of undo records. It distinguishes the programs that a process has
 * executed, because a child of an earlier program has records of that program, possibly at the same
 * addresses. */
static inline pid_t inproc_undo_id(const struct inproc_process *p)
{
	return (pid_t)((uint32_t)p->pid | (p->execs & 0x1ff)
						  << 22); /* Linux: pids are below 1 << 22 */
}

void inproc_note(struct inproc_engine *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a note about a process that is not traced, or not completely. Printed even with -q. */
void inproc_blind(struct inproc_engine *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
