/* Interpreters in an address space, and the frames of the language that each runs.
 *
 * In: a struct space (a stopped process, a core file). Out: for each thread the functions, files
 * and lines that it executes, innermost first.
 * Always true: the process is neither changed nor trusted. Loops of pointers, endless names and
 * invalid structures give fewer frames or an error, within bounded time and memory. A name that
 * cannot be read is NULL, never a guess.
 */
#ifndef DESCRY_PROGRAM_RUNTIME_RUNTIME_H
#define DESCRY_PROGRAM_RUNTIME_RUNTIME_H

#include "program/space/space.h"
#include "program/unwind/unwind.h"

struct runtime_frame {
	uint64_t code; /* address of the function's code object: all its frames have the same */
	const char *function, *file; /* in the language's terms; live as long as the runtime */
	uint32_t line;               /* 0 not known */
	/* Native code called this frame, and so began a run of the interpreter's loop. */
	bool entry;
	/* With `entry`: an address in the native stack frame of that run. 0: not known. */
	uint64_t anchor;
	uint64_t frame; /* address of the language's own frame; 0: not known */
};
typedef VEC(struct runtime_frame) runtime_frame_vec;

/* A task of an event loop, as asyncio of Python has them: functions of which each awaits the one
 * in front of it. */
struct runtime_task {
	uint64_t object;
	const char *name; /* lives as long as the runtime; NULL: it cannot be read */
	uint64_t thread;  /* fs base of the thread that runs its loop; 0: no thread does */
	bool runs;        /* the thread executes it, its functions are on the thread's stack, too */
	/* Type of the object that it waits for, as name. NULL: it runs, or it is ready to run. */
	const char *waits;
	uint32_t frame, nframes; /* of runtime_tasks.frames: its functions, innermost first */
	uint32_t await, nawaits; /* of runtime_tasks.awaits: the tasks that it waits for */
	bool taken;              /* by runtime_tasks_take() */
};
/* The task `by` waits for the task `task`: numbers in runtime_tasks.v. */
struct runtime_await {
	uint32_t by, task;
};
struct runtime_tasks {
	VEC(struct runtime_task) v; /* a task stands behind all those that it waits for */
	runtime_frame_vec frames;
	VEC(struct runtime_await) awaits;
	VEC(uint32_t) by_thread; /* all tasks in order of their threads: see runtime_tasks_take() */
};

enum { RUNTIME_FRAMES_MAX = 1 << 16 };

struct runtime;
struct wire_language;

struct runtime_type {
	const char *name; /* "python": that of its enum frame_kind */
	/* With step(): the name of its program, and files that a machine with the runtime usually
	 * has; NULL is the last. */
	const char *program, *const *usual;
	/* Returns true when the name of a file suggests the interpreter. The program's own file is
	 * always opened, except by runtime_find_met(). */
	bool (*is_library)(const char *name);
	/* Opens the interpreter in an object that is mapped with this bias. *ret then owns the
	 * object. Without an interpreter, returns NULL and sets *ret to NULL. */
	struct err *(*open)(struct space *s, struct object *o, uint64_t bias, struct runtime **ret);
	/* Adds the frames of a thread, innermost first. NULL: step() adds them. */
	void (*frames)(struct runtime *r, const struct space_thread *t, runtime_frame_vec *ret);
	/* Adds the tasks that have not ended, and `awaits`, in any order. Does not set await and
	 * nawaits. NULL: the language has none that descry knows. */
	struct err *(*tasks)(struct runtime *r, struct runtime_tasks *ret);
	/* For languages whose functions have native frames, else NULL. Goes from a frame in code
	 * that the runtime has made to its caller, and adds the functions that the frame executes.
	 * Returns false when the code is not the runtime's. A frame without a known caller
	 * stays. */
	bool (*step)(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
		     runtime_frame_vec *ret);
	/* Returns true when an address lies in the interpreter's loop. */
	bool (*is_loop)(const struct runtime *r, uint64_t addr);
	/* Finds a range of addresses that has all of the loop. Size 0: not known. NULL: there is no
	 * one range. */
	void (*loop)(const struct runtime *r, uint64_t *ret_start, uint64_t *ret_size);
	/* Returns true when it lies in a function that the loop calls once for each run, so that
	 * its frames belong to the loop's. NULL: there is none. */
	bool (*is_part)(const struct runtime *r, uint64_t addr);
	/* Fills in the data by which programs walk the frames (wire/language.h).
	 * Returns false while the runtime has not made its structures yet. NULL: programs cannot
	 * walk them. */
	bool (*wire)(struct runtime *r, struct wire_language *ret);
	/* The runtime moves code objects. */
	bool moves;
	/* The code object at an address (with a method's entry at another, or 0), read now, if it
	 * is still the one with this id (wire/language.h); lives as long as r. NULL: it is not, or
	 * cannot be read. */
	const void *(*learn)(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id);
	/* Function, file and line of a place in its code (WIRE_LANGUAGE_AT()). A function that has
	 * no lines of its own has no file either: it is where its caller is. i: 0, or the number of
	 * a function around it, into which the ones before are inlined. Returns the number of all,
	 * at least 1. */
	uint32_t (*describe)(struct runtime *r, const void *code, uint32_t at, uint32_t i,
			     struct runtime_frame *ret);
	/* The process has ended: frees what only a reader of it needs. describe() works as before.
	 * NULL: there is no such data. */
	void (*ended)(struct runtime *r);
	void (*free)(struct runtime *r);
};

struct runtime {
	const struct runtime_type *type;
	struct space *space; /* borrowed */
	size_t *budget;   /* bytes of names and tables that may be read; NULL: the runtime's own */
	bool spent;       /* the budget has not sufficed for a read */
	char version[32]; /* "3.11.2" */
};

extern const struct runtime_type runtime_python, runtime_ruby, runtime_jvm, runtime_v8;

/* Finds the first interpreter in an address space. Sets *ret to NULL when there is none. Returns an
 * error when descry does not know the interpreter's structures, or they are inconsistent; E2BIG:
 * the search has taken too many reads or too long. */
struct err *runtime_find(struct space *s, struct runtime **ret);
/* Does the same for a process that is met while tracing. Opens only files whose names suggest an
 * interpreter that programs can walk (`wire`). Takes the bytes of its reads from *budget, which may
 * be shared. */
struct err *runtime_find_met(struct space *s, size_t *budget, struct runtime **ret);
/* Takes n bytes from the budget of a runtime, of which `own` is its own. Returns false when fewer
 * are left. */
bool runtime_afford(struct runtime *r, size_t *own, size_t n);
/* Returns true when the path of a file suggests the library of an interpreter that programs can
 * walk. */
bool runtime_is_library(const char *path);
/* Returns true when it suggests a program that loads such a library. */
bool runtime_is_program(const char *path);

/* --- expected.c --- */
/* Returns true when a process has mapped a file whose name suggests the runtime. */
bool runtime_is_in(const struct runtime_type *type, pid_t pid);
/* Returns true when this machine has the runtime: in PATH, in a usual place, or as a process whose
 * program has its name. */
bool runtime_is_here(const struct runtime_type *type);

/* --- runtime.c --- */
void runtime_frames(struct runtime *r, const struct space_thread *t, runtime_frame_vec *ret);
/* The walk of a thread's native stack, in which the runtime steps through its own code. It adds up
 * to RUNTIME_FRAMES_MAX frames. */
struct runtime_walk {
	struct runtime *runtime;
	const struct space_thread *thread;
	runtime_frame_vec *ret;
	uint32_t end; /* runtime_code() sets it: frames in ret are fewer */
};
struct unwind_code runtime_code(struct runtime_walk *w);
void runtime_free(struct runtime *r);

/* --- tasks.c --- */
/* Finds the tasks that have not ended, in true order. ENOTSUP: descry knows none of this
 * language. */
struct err *runtime_tasks(struct runtime *r, struct runtime_tasks *ret);
/* Takes the tasks of the loop that this thread runs, in their order. Returns the first of *ret_n
 * indexes. Each task is taken once: a process may give all its threads the same number. Thread 0
 * has none. */
const uint32_t *runtime_tasks_take(struct runtime_tasks *t, uint64_t thread, uint32_t *ret_n);
void runtime_tasks_fini(struct runtime_tasks *t);

/* --- merge.c --- */
/* A frame of the merged stack: the native stack and the language's frames, innermost first. */
struct runtime_merged {
	bool language;
	uint32_t index; /* of the language's frames, else of the native ones */
};
typedef VEC(struct runtime_merged) runtime_merged_vec;
struct runtime_stack {
	/* pcs[0] is the thread's program counter. The others are return addresses. sps[i] is the
	 * stack pointer of frame i. */
	const uint64_t *pcs, *sps; /* sps NULL: not known */
	uint32_t n;
	bool whole; /* the native frames go to the thread's first one */
	const struct runtime_frame *frames;
	uint32_t nframes;
	const char *language; /* of frames: runtime_type's name; NULL: there are none */
	/* is_loop returns true when an address lies in the interpreter's loop, and is_part when it
	 * lies in a function that the loop calls once for each run. is_part may be NULL. */
	bool (*is_loop)(const void *arg, uint64_t addr);
	bool (*is_part)(const void *arg, uint64_t addr);
	const void *arg;
};
/* Implementations of is_loop and is_part whose argument is a struct runtime. */
bool runtime_is_loop(const void *runtime, uint64_t addr);
bool runtime_is_part(const void *runtime, uint64_t addr);
/* Replaces the native frames of the interpreter's loop by the language's frames. With `both`, adds
 * the language's frames before each native frame of the loop. Frames of the language without a
 * native frame come last: the walk of the native stack ended early. */
void runtime_merge(const struct runtime_stack *st, bool both, runtime_merged_vec *ret);

#endif
