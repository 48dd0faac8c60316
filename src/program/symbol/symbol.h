/* Addresses to names: the kernel's (by queries, or kallsyms) and processes' (by their mappings now,
 * or at the last look).
 *
 * Always true: a name that is not found is NULL, never guessed. A process that has ended keeps the
 * mappings seen before. */
#ifndef DESCRY_PROGRAM_SYMBOL_SYMBOL_H
#define DESCRY_PROGRAM_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "program/object/object.h"
#include "program/space/space.h"

struct symbols; /* caches: kallsyms, objects by (dev, inode, path), processes by pid */

struct symbols *symbols_new(void);
/* Returns s, for one more user. symbols_free() of the last one frees it. For one thread. */
struct symbols *symbols_share(struct symbols *s);
void symbols_free(struct symbols *s);

struct place {
	const char *
		module; /* "vmlinux", "libc.so.6": the file's base name, never "a.out"; NULL: unknown */
	const char *function; /* demangled; NULL unknown */
	uint64_t offset;      /* from the function's start, else from the module's load address */
	uint64_t module_base; /* of a kernel address only from symbols_kernel_module() */
};

/* Sets a function that queries the kernel for the name of an address. It returns the output of
 * "%pS" ("vfs_read+0x10/0xd0 [module]"), or NULL when it cannot. Names come from it until kallsyms
 * is needed or has been read for another reason. Reading kallsyms takes ~50 ms, a query ~1 us. */
void symbols_ask_kernel(struct symbols *s, const char *(*ask)(void *arg, uint64_t addr), void *arg);
/* Finds a kernel address. Returns false, with ret zeroed, when nothing is known. That includes
 * kallsyms hiding addresses for lack of privilege: symbols_kernel_err, which reads it, returns this
 * reason. */
bool symbols_kernel(struct symbols *s, uint64_t addr, struct place *ret);
/* Does the same with module_base, by kallsyms. */
bool symbols_kernel_module(struct symbols *s, uint64_t addr, struct place *ret);
const char *symbols_kernel_err(struct symbols *s);
bool symbols_kernel_addr(struct symbols *s, const char *module, const char *name, uint64_t *ret);
/* Calls fn for every text symbol of the kernel. */
void symbols_kernel_each(struct symbols *s,
			 void (*fn)(void *arg, const char *module, const char *name, uint64_t addr),
			 void *arg);

/* Finds a user address of process pid, by the mappings at this time (CLOCK_MONOTONIC ns), as far as
 * known. time 0: by the present mappings, or the last. Strings live until symbols_tidy(). Also
 * finds JIT symbols of /tmp/perf-PID.map. */
bool symbols_user(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr, struct place *ret);
/* Answers queries about process space->pid from the space, for instance a core file, until
 * symbols_space_gone(). */
void symbols_space(struct symbols *s, struct space *space);
void symbols_space_gone(struct symbols *s, struct space *space);
/* Returns the file mapped at an address of process pid ("" for memory without a file), or NULL when
 * nothing is mapped there. Lives until symbols_tidy(). */
const char *symbols_user_path(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr);
/* The source line of an address and the functions inlined there, innermost first. The last is not
 * inlined. All but the first have the line of the call. */
struct source_place {
	const char *function, *file; /* NULL: not known; the file's base name */
	uint32_t line;
	bool inlined;
};
/* Returns their count, 0 without debugging information. Valid until the next call. */
uint32_t symbols_source(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			const struct source_place **ret);
/* Reads pid's mappings now, so that its addresses have names after its end. */
void symbols_remember(struct symbols *s, pid_t pid);
/* Does the same, even if they were read a moment ago. */
void symbols_look(struct symbols *s, pid_t pid);
/* Lets the kernel report the mappings of every process (pid 0), or of pid, which has one thread,
 * and the processes it forks, so that addresses of short-lived processes have names. Drain it at
 * least every second or so. Does nothing when this is not permitted. */
void symbols_watch(struct symbols *s, pid_t pid);
void symbols_watch_drain(struct symbols *s);
bool symbols_watching(const struct symbols *s);
/* Drops the mappings of pid (exec). The next query reads them again. */
void symbols_refresh(struct symbols *s, pid_t pid);

/* Limits for all processes and files together, and counts of addresses without a name because of
 * them. Entries with the oldest last query are dropped first, and read again by a query if they
 * still exist. Zero: the default of symbols_new(). */
struct symbols_limits {
	uint32_t open_files; /* descriptors of object files */
	/* Files whose source lines are known. libdw has one or two descriptors for each. */
	uint32_t sources;
	uint64_t source_work;   /* DIEs and ranges read of such a file */
	size_t object_bytes;    /* headers and symbols */
	size_t jit_bytes;       /* perf maps; one alone may take more */
	size_t names;           /* texts that were given out, about; symbols_tidy() drops them */
	size_t jit_names;       /* of these, names of perf maps between two symbols_tidy() */
	uint32_t processes;     /* that have ended */
	uint32_t mappings;      /* of processes that have ended */
	uint32_t live_mappings; /* of processes that live */
};
void symbols_limit(struct symbols *s, const struct symbols_limits *l);
/* Closes some of the files that no query has used for 5 s. now: CLOCK_MONOTONIC. */
void symbols_close_idle(struct symbols *s, uint64_t now);
/* Frees all texts that were given out when they take more than limits.names. The caller holds none.
 * A query makes its text again, so that nothing is lost. */
void symbols_tidy(struct symbols *s);
struct symbols_losses {
	uint64_t limited;    /* addresses without a name because of these limits */
	uint64_t numberless; /* because they were recorded before their process's pid was known */
	uint64_t changed;    /* because a file changed while it was read: see base/changed.h */
	uint64_t denied;     /* processes whose mappings may not be read (/proc/PID/maps) */
	pid_t denied_pid;    /* the first of them */
	const char *kernel; /* reason why queried kernel addresses have no names; NULL: they have */
};
void symbols_losses(const struct symbols *s, struct symbols_losses *ret);
/* Return the object of a mapping or a path, shared and kept as long as s, or NULL when it cannot be
 * opened. */
struct object *symbols_object(struct symbols *s, pid_t pid, const struct mapping *m);
struct object *symbols_object_at(struct symbols *s, const char *path);
/* Returns the name in C++, Rust or D notation, or the name itself when it is not mangled. Lives
 * until symbols_tidy(). */
const char *symbols_demangle(struct symbols *s, const char *name);
/* The kernel's reports of each executable mapping of any process, and of each fork. */
struct map_watch;
struct map_watch_ops {
	void (*map)(void *arg, pid_t pid, const struct mapping *m); /* valid during the call */
	void (*forked)(void *arg, pid_t parent, pid_t child);       /* NULL: not needed */
	void (*exec)(void *arg, pid_t pid,
		     uint64_t time); /* NULL: not needed; the new program's mappings follow */
};
/* Starts watching. pid as above. wake: its descriptors (map_watch_fd, -1 behind the last) become
 * readable after each record, otherwise when many records have gathered. Returns NULL when this is
 * not permitted. */
struct map_watch *map_watch_new(const struct map_watch_ops *ops, void *arg, pid_t pid, bool wake);
void map_watch_free(struct map_watch *w);
int map_watch_fd(const struct map_watch *w, uint32_t i);
void map_watch_drain(struct map_watch *w);
/* Returns true when a ring has been full, so that some records were lost. */
bool map_watch_lost(const struct map_watch *w);

/* Writes "module`function+0xoff"; or "module+0xoff", counted from the module's beginning, so that
 * it is equal in all processes; or "module`0xaddr"; or "0xaddr". with_offset false: without "+0x.."
 * behind a function, as usym() prints. */
void place_format(const struct place *p, uint64_t addr, bool with_offset, char *buf, uint32_t n);

#endif
