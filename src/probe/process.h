/* The object files of a process that is to be traced: for the pid and usdt providers. Private to
 * src/probe/.
 *
 * In: a pid. Out: every executable object it maps; for a command that has only just been started,
 * also the libraries its dynamic linker is going to load.
 * Always true: objects belong to the probe set's symbols, paths and lists to its arena.
 */
#ifndef DESCRY_PROBE_PROCESS_H
#define DESCRY_PROBE_PROCESS_H

#include "probe/probe.h"

struct process_object {
	const char *path; /* opens the file from here: what a uprobe is attached to */
	const char *name; /* base name: probemod */
	const char *
		seen; /* its path as the process sees it, which is another in another mount namespace */
	pid_t pid;
	struct object *object;
	bool is_main;
	uint64_t dev, inode;
};

struct process_objects {
	struct process_object *v;
	uint32_t n;
};

struct err *process_objects(struct probe_set *ps, pid_t pid, const struct process_objects **ret);

/* Does a module pattern mean this object? "a.out" is the main program; "libc" and "libc.so" mean
 * libc.so.6; a link beside the file, or the one by which the process was started, means it; an
 * absolute path, which may be a pattern too, is looked up as the process would do it. */
bool process_object_matches(const struct process_object *po, const char *pattern);

/* Libraries that the process has not loaded, by path or by the name they would be found by:
 * LD_LIBRARY_PATH, the directories of the objects it has, the usual ones. The first that a name
 * means; each file that a pattern matches. A uprobe on the file fires as soon as it is mapped. */
void process_libraries(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
		       const char *pattern,
		       void (*found)(void *arg, const struct process_object *po), void *arg);

/* All libraries in LD_LIBRARY_PATH, beside the program and in the directory it runs in, loaded or
 * not. */
void process_libraries_near(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
			    void (*found)(void *arg, const struct process_object *po), void *arg);

/* As probe_add with the next dynamic id, but several places may bear one name (static functions of
 * the same name, a USDT probe expanded twice in a function): each is a probe of its own. Sets
 * object, offset and pid. */
struct probe *process_add_probe(struct probe_set *ps, const struct provider *pv, pid_t pid,
				const struct process_object *po, const char *prov, const char *func,
				const char *name, enum attach_kind kind, uint64_t offset,
				bool *ret_new);

/* A description matched against processes, by the providers of places in them. */
struct process_match {
	const struct provider *pv;
	struct probe_set *ps;
	const struct probe_desc *pd;
	void (*found)(void *arg, struct probe *p);
	void *arg;
	/* of the process at hand */
	pid_t pid;
	char prov[32]; /* the provider's name there: "pid123" */
};
/* Calls one() for the process whose number stands behind the provider's three letters, which need
 * not be a target; for the targets that a pattern means otherwise. The first error ends it. */
struct err *process_match_each(struct process_match *m,
			       struct err *(*one)(struct process_match *m));

/* What a hit costs by class, for notes. */
const char *process_price(enum uprobe_class class, enum attach_kind kind);

/* Adds a remark for the user, once; takes the text. */
void process_note(struct probe_set *ps, char *text);

#endif
