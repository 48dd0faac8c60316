/* The object files of a process that is to be traced: for the pid and usdt providers. Private to src/probe/.
 *
 * In: a pid. Out: every executable object it maps; for a command that has only just been started, also the libraries
 * its dynamic linker is going to load.
 * Always true: objects belong to the probe set's symbols, paths and lists to its arena.
 */
#ifndef DESCRY_PROBE_PROCESS_H
#define DESCRY_PROBE_PROCESS_H

#include "probe/probe.h"

struct process_object {
	const char *path; /* opens the file from here: what a uprobe is attached to */
	const char *name; /* base name: probemod */
	struct object *object;
	bool is_main;
	uint64_t dev, inode;
};

struct process_objects {
	struct process_object *v;
	uint32_t n;
};

struct err *process_objects(struct probe_set *ps, pid_t pid, const struct process_objects **ret);

/* Does a module pattern mean this object? "a.out" is the main program; "libc" and "libc.so" mean libc.so.6. */
bool process_object_matches(const struct process_object *po, const char *pattern);

/* A library that the process has not loaded, by its path or by the name it would be found by: LD_LIBRARY_PATH, the
 * directories of the objects it has, the usual ones. A uprobe on the file fires as soon as it is mapped. */
bool process_library(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
		     const char *pattern, struct process_object *ret);

/* As probe_add with the next dynamic id, but several places may bear one name (static functions of the same name, a
 * USDT probe expanded twice in a function): each is a probe of its own. Sets object, offset and pid. */
struct probe *process_add_probe(struct probe_set *ps, const struct provider *pv, pid_t pid,
				const struct process_object *po, const char *prov, const char *func,
				const char *name, enum attach_kind kind, uint64_t offset,
				bool *ret_new);

/* What a hit costs by class, for notes. */
const char *process_price(enum uprobe_class class, enum attach_kind kind);

/* Adds a remark for the user, once; takes the text. */
void process_note(struct probe_set *ps, char *text);

#endif
