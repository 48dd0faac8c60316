/* The object that `descry malloc record` preloads into a command: its malloc(3) and the like call
 * those of the next object, and write events to memory that the command shares with the tracer
 * (wire/alloc.h).
 *
 * Always true: the program gets exactly what the next object's function gives. The object allocates
 * nothing, and changes neither errno nor a signal mask. It waits for the tracer only while that
 * lives, and at most WAIT_MS at a time. A process that may filter system calls (seccomp(2)) gets
 * none from here. A forked child asks the tracer for memory of its own at its first call of
 * malloc(3) or the like. A program that is executed gets this object, too, by variables in its
 * environment, which this object removes there.
 *
 *	alloc.c        the functions that programs call
 *	alloc_order.h  the ticks of an event, in an order in which the calls can have happened
 *	alloc_start.c  the rest of them, rare
 *	alloc_join.c   how a process gets its memory from the tracer
 *	alloc_exec.c   execve(2) and its like
 *	alloc_room.c   memory for what alloc_exec.c copies
 *	alloc_loads.c  whether a program that is executed would load this object
 *	alloc_maps.c   mmap(2) and its like, mlockall(2)
 *	alloc_walk.c   the stack of a call
 *	alloc_reach.c  what a walk needs rarely: its stack's bounds, and new tables
 *	alloc_language.c  the frames of Python and Ruby
 */
#ifndef DESCRY_AGENT_ALLOC_PRIVATE_H
#define DESCRY_AGENT_ALLOC_PRIVATE_H

#include "agent/sys.h"
#include "wire/alloc.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define FRAME ((uintptr_t)__builtin_frame_address(0))

enum { WAIT_MS = 1000 };

/* X(type, name, arguments): functions that are looked up in the next object. */
#define ALLOC_NEXT(X) \
	X(void *, malloc, (size_t)) \
	X(void *, calloc, (size_t, size_t)) \
	X(void *, realloc, (void *, size_t)) \
	X(void *, reallocarray, (void *, size_t, size_t)) \
	X(void, free, (void *)) \
	X(int, posix_memalign, (void **, size_t, size_t)) \
	X(void *, aligned_alloc, (size_t, size_t)) \
	X(void *, memalign, (size_t, size_t)) \
	X(void *, valloc, (size_t)) \
	X(void *, pvalloc, (size_t)) \
	X(void *, mmap, (void *, size_t, int, int, int, long)) \
	X(int, munmap, (void *, size_t)) \
	X(void *, mremap, (void *, size_t, size_t, int, void *)) \
	X(int, brk, (void *)) \
	X(void *, sbrk, (intptr_t)) \
	X(int, mlockall, (int)) \
	X(void *, _Znwm, (size_t)) \
	X(void *, _Znam, (size_t)) \
	X(void *, _ZnwmRKSt9nothrow_t, (size_t, const void *)) \
	X(void *, _ZnamRKSt9nothrow_t, (size_t, const void *)) \
	X(void *, _ZnwmSt11align_val_t, (size_t, size_t)) \
	X(void *, _ZnamSt11align_val_t, (size_t, size_t)) \
	X(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t, size_t, const void *)) \
	X(void *, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t, size_t, const void *)) \
	X(void, _ZdlPv, (void *)) \
	X(void, _ZdaPv, (void *)) \
	X(void, _ZdlPvm, (void *, size_t)) \
	X(void, _ZdaPvm, (void *, size_t)) \
	X(void, _ZdlPvSt11align_val_t, (void *, size_t)) \
	X(void, _ZdaPvSt11align_val_t, (void *, size_t)) \
	X(void, _ZdlPvmSt11align_val_t, (void *, size_t, size_t)) \
	X(void, _ZdaPvmSt11align_val_t, (void *, size_t, size_t)) \
	X(void, _ZdlPvRKSt9nothrow_t, (void *, const void *)) \
	X(void, _ZdaPvRKSt9nothrow_t, (void *, const void *))

struct next {
#define X(type, name, arguments) type(*name) arguments;
	ALLOC_NEXT(X)
#undef X
};

/* Of a thread. Zero: it has no ring yet. */
struct thread {
	uint8_t *at, *limit; /* where its next event goes, up to the segment's end */
	uint64_t time, addr; /* of its last event */
	uint64_t count;      /* of events << 40 */
	uint64_t off;        /* position of an event - its address */
	struct wire_alloc_ring *ring;
	uint8_t *data;           /* the ring's */
	struct alloc_walk *walk; /* the ring's; 0: no stacks are taken */
	struct alloc_own *own;   /* the ring's; 0: unknown */
	uint32_t stack;          /* of its last event that has one */
	uint32_t wait;           /* allocations up to the next one with a stack; 0: all have one */
	uint32_t random;
	/* The frame of the outermost call of malloc(3) and the like, and that of the code which
	 * writes an event; 0: none. The stack pointer is above it when a jump has left it. */
	uintptr_t in, writing;
};

/* Of the recording that the process, its children and the programs that it executes belong to. */
struct recording {
	struct wire_alloc_lobby *lobby; /* 0: of none */
	const struct wire_alloc_life *life;
	uint32_t tracer, object, name;
	uint64_t device, inode; /* of the shared object */
	uint64_t secret, proof;
};

/* Words of a page that the kernel fills with zeros in a forked child. */
enum {
	PAGE_ON,         /* 1: this process records */
	PAGE_ASKED,      /* 1: it has asked the tracer for memory */
	PAGE_LOCK,       /* 1: a thread changes `environ`, */
	PAGE_CALLERS,    /* in which so many calls have put descry's variables */
	PAGE_SHELL_LOCK, /* 1: a thread changes how the process handles SIGINT and SIGQUIT, */
	PAGE_SHELLS,     /* which it ignores during so many calls of system(3) */
};

/* Of the process. */
struct state {
	struct next next;
	const uint32_t *on; /* &page[PAGE_ON] */
	uint32_t *page;     /* 0: no process has got memory yet */
	struct wire_alloc *memory;
	struct recording recording;
	uint32_t begun;         /* alloc_start() */
	uint32_t rings;         /* that may be claimed: the others are not mapped */
	uint32_t claims;        /* of rings */
	uint32_t several;       /* 1: more than one thread has had a ring */
	struct alloc_own *owns; /* ALLOC_OWN of each ring; 0: there is no memory for them */
	/* 1: the object with malloc() has the operators of C++, too. Else they call malloc(). */
	uint32_t operators;
	uint32_t hidden; /* 1: the program calls another malloc() than that of this object */
	/* Of stacks. */
	struct alloc_walk *walks;      /* of each ring; 0: no stacks are taken */
	uintptr_t linker, linker_size; /* the text of the dynamic linker, if it unloads objects */
	uintptr_t stack_start;         /* the upper end of the first thread's stack */
	/* Calls of the dynamic linker that allocate, and that free. It does both when it loads an
	 * object, and frees after it has unloaded one. */
	uint32_t loads, closes;
	uint32_t loads_seen, closes_seen; /* those that the tables have */
	uint32_t vain;                    /* requests in a row for what was no text */
	uint32_t unserved; /* the value of served when a request was last in vain, + 1 */
	uint64_t asked_at; /* ticks of the last request of the former kind */
};
typedef int alloc_spawn(int *pid, const char *path, const void *actions, const void *attributes,
			char *const *argv, char *const *env);
enum { EARLY = 64 << 10 };
#define HIDDEN __attribute__((visibility("hidden")))
extern struct state state HIDDEN;
extern uint8_t early[EARLY] HIDDEN; /* the memory of alloc_early() */
extern uint32_t alloc_quiet HIDDEN; /* 1: system calls may be filtered */
/* The next object's functions, for code in assembly. */
extern void *alloc_next_syscall HIDDEN, *alloc_next_prctl HIDDEN;
void alloc_before_prctl(uint64_t option, uint64_t arg) HIDDEN;
void alloc_before_syscall(uint64_t nr, uint64_t a, uint64_t b) HIDDEN;

/* Looks up the functions and the tracer, once. */
void alloc_start(void) HIDDEN;
/* Asks the tracer of state.recording for memory, and begins to record. */
void alloc_begin(void) HIDDEN;
/* The same in a forked child, at its first call, whose function has this frame. */
void alloc_follow(struct thread *t, uintptr_t frame) HIDDEN;
/* Unmaps the rings that nobody has but a few, because all memory of the process is locked now. */
void alloc_shrink(void) HIDDEN;
/* Makes sure that the next object's functions are known, and that a forked child has asked for
 * memory. frame: of the function that is called. Returns false while they are looked up. */
int alloc_ready(uintptr_t frame) HIDDEN;
/* Writes an event of memory that the program maps by a function with this frame, if it is not the
 * allocator that maps it. */
void alloc_put_map(enum wire_alloc_map kind, uint64_t size, uintptr_t addr, uintptr_t frame) HIDDEN;
/* Looks up the next object's functions of alloc_exec.c. */
void alloc_find_exec(void) HIDDEN;
/* Returns memory, or 0. A child of vfork(2) may call it. returns: alloc_leave_room() follows in any
 * case, not only when the program could not be executed. */
void *alloc_take_room(uint64_t bytes, int returns) HIDDEN;
void alloc_leave_room(void *room, uint64_t bytes) HIDDEN;
/* Returns the next object's function of this name, 0: it is the C library's. */
void *alloc_next_unless_libc(const char *name) HIDDEN;
/* Takes descry's variables out of `environ`: also in a forked child, if the parent was in
 * popen(3). */
void alloc_restore_environ(void) HIDDEN;
/* system(3), with this environment, and leaves its room (0: none) when the shell has begun. Returns
 * false when the shell could not be started. */
int alloc_run_shell(alloc_spawn *spawn, const char *command, char *const *env, void *room,
		    uint64_t room_bytes, int *ret_status) HIDDEN;
/* Gets room for an event, and a ring. Returns false when there is none: the event is lost. */
int alloc_room(struct thread *t) HIDDEN;
/* Counts a call that is not recorded. */
void alloc_lose(struct thread *t) HIDDEN;
/* The thread has left the code that was writing an event: begins anew behind the last whole one.
 * Returns false when it is still in there, and this is a signal handler. */
int alloc_left(struct thread *t) HIDDEN;
/* Notes that the dynamic linker has called. */
void alloc_linked(int frees) HIDDEN;
/* Walks from `frame`, the frame of a function of alloc.c. Its caller is the innermost frame of the
 * stack. Returns the number of the stack's node, or 0 when the tree of nodes is full. */
uint32_t alloc_walk(struct thread *t, uintptr_t frame) HIDDEN;
/* Returns a random number of allocations up to the next one with a stack: on average
 * wire_alloc.sample. */
uint32_t alloc_interval(struct thread *t) HIDDEN;
/* Finds what walks need to know of the process. start: the place of argc. */
void alloc_walks_start(const uint64_t *start, const uint64_t *auxv) HIDDEN;
/* Drops the walks of the process that has forked this one. */
void alloc_walks_drop(void) HIDDEN;
/* Gets memory for walks, and tables. */
void alloc_walks_open(struct wire_alloc *m) HIDDEN;
/* Asks the tracer for new tables and waits for them. Returns false when it did not answer. */
int alloc_ask(struct wire_alloc *m) HIDDEN;
int alloc_is_over(const struct wire_alloc *m) HIDDEN;
/* Returns true while the tracer lives and records forked children and executed programs. */
int alloc_is_open(void) HIDDEN;
void alloc_ring_bell(void) HIDDEN;
/* Return true when the program of this path, relative to a directory, or the first of this name in
 * the environment's PATH, would load the object and run with it; true also when none can be
 * executed. */
int alloc_loads(int dir, const char *path) HIDDEN;
int alloc_loads_name(const char *name) HIDDEN;
/* The beginning of the name of AddressSanitizer's library. */
#define ALLOC_ASAN "libasan.so"
/* A system call as the C library makes it: returns -1 and sets errno when it fails. */
int64_t alloc_syscall(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		      uint64_t f) HIDDEN;
/* Memory for calls that dlsym(3) makes while functions are looked up. */
void *alloc_early(size_t size, size_t align) HIDDEN;
static inline int alloc_is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)early < EARLY;
}

/* The ticks of wire/alloc.h. The processor may read its counter before loads before it are done. */
static inline uint64_t ticks(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return ((uint64_t)hi << 32 | lo) >> WIRE_ALLOC_TICK;
}

static inline uint8_t *put_number(uint8_t *p, uint64_t v)
{
	/* (bits + 6) / 7 */
	uint32_t n = ((64 - (uint32_t)__builtin_clzll(v | 1) + 6) * 37) >> 8;

	if (UNLIKELY(n > 8)) {
		*p = 0;
		__builtin_memcpy(p + 1, &v, sizeof(v));
		return p + 9;
	}
	v = (v << 1 | 1) << (n - 1);
	__builtin_memcpy(p, &v, sizeof(v));
	return p + n;
}

static inline uint8_t *put_address(struct thread *t, uint8_t *p, uint64_t addr)
{
	uint64_t d = addr - t->addr, odd = d & 15;

	d = odd ? d : (uint64_t)((int64_t)d >> 4);
	return put_number(p, (d << 1 ^ (uint64_t)((int64_t)d >> 63)) << 1 | (odd != 0));
}

/* Returns true when the stack of this allocation is recorded. */
static inline int takes_stack(struct thread *t)
{
	if (LIKELY(!t->wait))
		return 1;
	if (LIKELY(--t->wait))
		return 0;
	t->wait = alloc_interval(t);
	return 1;
}

/* Makes all before it, up to p, visible to the tracer. */
static inline void publish(struct thread *t, uint8_t *p)
{
	t->at = p;
	t->count += 1ull << 40;
	__atomic_store_n(&t->ring->head,
			 t->count | WIRE_ALLOC_POSITION(t->off + (uint64_t)(uintptr_t)p),
			 __ATOMIC_RELEASE);
}

#endif
