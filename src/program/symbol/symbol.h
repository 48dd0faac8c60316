/* Addresses to names: kernel (as it says itself, or kallsyms) and processes (maps as they are, or
 * were when last looked at).
 *
 * Always true: a name that cannot be found is said so (NULL), never guessed; a process that has
 * gone keeps the mappings seen before.
 */
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
void symbols_free(struct symbols *s);

struct place {
	const char *
		module; /* "vmlinux", "libc.so.6", "a.out" never: the file's base name; NULL unknown */
	const char *function; /* demangled; NULL unknown */
	uint64_t offset;      /* from the function's start, else from the module's load address */
	uint64_t module_base; /* of a kernel address only from symbols_kernel_module() */
};

/* Who can ask the kernel what it calls an address: ask gives what "%pS" prints ("vfs_read+0x10/0xd0
 * [module]"), NULL: it cannot be asked. Names come from there until kallsyms has been read for
 * another reason, or is needed: it takes ~50 ms, to ask ~1 us. */
void symbols_ask_kernel(struct symbols *s, const char *(*ask)(void *arg, uint64_t addr), void *arg);
/* Kernel address. False: nothing known (ret is zeroed): also where kallsyms hides addresses, for
 * want of privilege; symbols_kernel_err, which reads it, says so then. */
bool symbols_kernel(struct symbols *s, uint64_t addr, struct place *ret);
/* The same with module_base, by kallsyms. */
bool symbols_kernel_module(struct symbols *s, uint64_t addr, struct place *ret);
const char *symbols_kernel_err(struct symbols *s);
bool symbols_kernel_addr(struct symbols *s, const char *module, const char *name, uint64_t *ret);
/* The kernel function list for listing: calls fn for every text symbol. */
void symbols_kernel_each(struct symbols *s,
			 void (*fn)(void *arg, const char *module, const char *name, uint64_t addr),
			 void *arg);

/* User address of process pid, by what was mapped at that time (CLOCK_MONOTONIC ns), as far as it
 * is known; time 0: by what is now, or was last. Strings live as long as s. JIT symbols from
 * /tmp/perf-PID.map too. */
bool symbols_user(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr, struct place *ret);
/* From now on what is asked of process space->pid is answered by what the space has, a core's for
 * instance, until symbols_space_gone(). */
void symbols_space(struct symbols *s, struct space *space);
void symbols_space_gone(struct symbols *s, struct space *space);
/* The file mapped at an address of process pid ("" for memory that is no file's); NULL: nothing is
 * mapped there. Lives as long as s. */
const char *symbols_user_path(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr);
/* The source line of an address and the functions inlined there: innermost first, the last one not
 * inlined. Its line is that of the call for all but the first. */
struct source_place {
	const char *function, *file; /* NULL not known; the file's base name */
	uint32_t line;
	bool inlined;
};
/* Their count, 0: there is no debugging information. Valid until the next call. */
uint32_t symbols_source(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			const struct source_place **ret);
/* Reads pid's mappings now, so that its addresses can be named after it has gone. */
void symbols_remember(struct symbols *s, pid_t pid);
/* From now on the kernel tells what every process maps (pid 0), or pid, which has one thread, and
 * those that it forks, so that short-lived ones can be named too; drain it at least every second or
 * so. Does nothing where that is not permitted. */
void symbols_watch(struct symbols *s, pid_t pid);
void symbols_watch_drain(struct symbols *s);
bool symbols_watching(const struct symbols *s);
/* Forgets them (exec): the next question reads again. */
void symbols_refresh(struct symbols *s, pid_t pid);

/* How much is kept of all processes and files together, and what could not be named for that. What
 * was not asked for longest goes first; it is read again when it is asked for and still there.
 * Zero: as symbols_new() set it. */
struct symbols_limits {
	uint32_t open_files; /* descriptors of object files */
	uint32_t sources; /* files whose source lines are known; libdw has one or two descriptors for each */
	size_t object_bytes; /* headers and symbols */
	size_t jit_bytes;    /* perf maps; one alone may take more */
	uint32_t processes;  /* that are gone */
	uint32_t mappings;   /* of processes that are gone */
};
void symbols_limit(struct symbols *s, const struct symbols_limits *l);
struct symbols_losses {
	uint64_t limited; /* addresses without a name because of these limits */
	uint64_t changed; /* because a file was changed while it was read: see base/changed.h */
	uint64_t denied;  /* processes whose mappings may not be read (/proc/PID/maps) */
	pid_t denied_pid; /* the first of them */
	const char *
		kernel; /* why addresses of the kernel that were asked for have no names; NULL: they have */
};
void symbols_losses(const struct symbols *s, struct symbols_losses *ret);
/* The object behind a mapping or a path, shared and kept as long as s; NULL when it cannot be
 * opened. */
struct object *symbols_object(struct symbols *s, pid_t pid, const struct mapping *m);
struct object *symbols_object_at(struct symbols *s, const char *path);
/* The name as C++, Rust or D would write it; the name itself when it is not mangled. Lives as long
 * as s. */
const char *symbols_demangle(struct symbols *s, const char *name);
/* The kernel tells of each executable mapping that any process makes, and of each fork. */
struct map_watch;
struct map_watch_ops {
	void (*map)(void *arg, pid_t pid, const struct mapping *m); /* valid during the call */
	void (*forked)(void *arg, pid_t parent, pid_t child);       /* NULL: not wanted */
	void (*exec)(void *arg, pid_t pid,
		     uint64_t time); /* likewise; the new program's mappings come then */
};
/* pid as above. wake: its descriptors (map_watch_fd, -1 behind the last) are readable after each
 * record, otherwise when a lot has gathered. NULL: not permitted. */
struct map_watch *map_watch_new(const struct map_watch_ops *ops, void *arg, pid_t pid, bool wake);
void map_watch_free(struct map_watch *w);
int map_watch_fd(const struct map_watch *w, uint32_t i);
void map_watch_drain(struct map_watch *w);
/* Has a ring ever been full? Then not everything was told. */
bool map_watch_lost(const struct map_watch *w);

/* Writes "module`function+0xoff", or, counted from where the module begins so that it is the same
 * in each process, "module+0xoff", or "module`0xaddr", or "0xaddr". with_offset false: no "+0x.."
 * behind a function, as usym() prints. */
void place_format(const struct place *p, uint64_t addr, bool with_offset, char *buf, uint32_t n);

#endif
