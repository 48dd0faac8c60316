/* The object files of a traced process, for the pid and usdt providers. Private to src/probe/.
 *
 * In: a pid. Out: every executable object that the process maps; for a command that has only just
 * been started, also the libraries that its dynamic linker is going to load.
 * Always true: the probe set's symbols own the objects, its arena owns paths and lists.
 */
#ifndef DESCRY_PROBE_PROCESS_H
#define DESCRY_PROBE_PROCESS_H

#include "probe/probe.h"

struct process_object {
	const char *path; /* opens the file from here; uprobes attach to it */
	const char *name; /* base name: probemod */
	const char *seen; /* its path in the process's mount namespace */
	pid_t pid;
	struct probe_set *ps;
	struct object *object;
	bool is_main;
	const char *started; /* the main program's path by which it was started; NULL: not known */
	uint64_t dev, inode;
};

struct process_objects {
	struct process_object *v;
	uint32_t n;
};

struct err *process_objects(struct probe_set *ps, pid_t pid, const struct process_objects **ret);
/* Has them listed again by the next call: a library was loaded. */
void process_objects_forget(struct probe_set *ps, pid_t pid);

/* Returns true when a process with these objects may walk its own stack, to pass an exception to a
 * handler. A return probe of the kernel's hides callers from it, and it ends the process. */
bool process_unwinds(const struct process_objects *objects);

/* Returns true for the dynamic linker, by its name. */
bool process_object_is_linker(const struct process_object *po);

/* Sets *ret to the object of an executable mapping of the process. Returns false when the file
 * cannot be opened. */
bool process_object_mapped(struct probe_set *ps, pid_t pid, const struct mapping *m,
			   struct process_object *ret);

/* Returns true when a module pattern names this object. "a.out" names the main program. "libc" and
 * "libc.so" name libc.so.6. A link beside the file, or the link by which the process was started,
 * names the file. An absolute path, which may be a pattern, is looked up as the process would look
 * it up. */
bool process_object_matches(const struct process_object *po, const char *pattern);

/* Finds libraries that the process has not loaded, by path or by name. Searches LD_LIBRARY_PATH,
 * the directories of its loaded objects and the usual directories. A name gives the first file
 * found, a pattern every file that matches. A uprobe on the file fires as soon as the process maps
 * it. */
void process_libraries(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
		       const char *pattern,
		       void (*found)(void *arg, const struct process_object *po), void *arg);

/* Finds all libraries in LD_LIBRARY_PATH, beside the program, where the java launcher has its JVM,
 * and in the working directory, whether loaded or not. */
void process_libraries_near(struct probe_set *ps, pid_t pid, const struct process_objects *objects,
			    void (*found)(void *arg, const struct process_object *po), void *arg);

/* Adds a probe as probe_add() does, with the next dynamic id. Several places may bear one name
 * (static functions of the same name, a USDT probe that a function expands twice); each gets a
 * probe of its own. Sets object, offset and pid. */
struct probe *process_add_probe(struct probe_set *ps, const struct provider *pv, pid_t pid,
				const struct process_object *po, const char *prov, const char *func,
				const char *name, enum attach_kind kind, uint64_t offset,
				bool *ret_new);

/* The state of matching a description against processes, for providers of places in processes. */
struct process_match {
	const struct provider *pv;
	struct probe_set *ps;
	const struct probe_desc *pd;
	probe_fn *found;
	void *arg;
	/* for the process at hand */
	pid_t pid;
	char prov[32]; /* the provider's name there: "pid123" */
};
/* Calls one() for the process whose number stands behind the provider's name; this process
 * need not be a target. For other patterns, calls one() for the targets that they match. Ends at
 * the first error. */
struct err *process_match_each(struct process_match *m,
			       struct err *(*one)(struct process_match *m));

/* A probe that is at the entry or return of a function of the process. */
struct process_event {
	const char *name;
	/* ATTACH_URETPROBE: of a function that no exception passes, and that calls none which may
	 * change stacks */
	enum attach_kind kind;
	const char *filter, *note; /* as struct probe's; NULL: none */
	const void *priv;
};
/* Adds the probe of such an event, if the description matches the function. Calls found. */
void process_add_event(struct process_match *m, const struct process_object *po,
		       const struct object_symbol *f, const struct process_event *ev);

/* Returns the cost of a hit for this class of uprobe, for notes. */
const char *process_price(enum uprobe_class class, enum attach_kind kind);

/* Returns the analysis of the object's code, or NULL when it cannot be read. The probe set owns it.
 * The next PROBE_TEXTS - 1 calls do not free it. */
struct text *process_text(struct probe_set *ps, struct object *o);

/* Adds a remark for the user unless it is there already; takes ownership of text. */
void process_note(struct probe_set *ps, char *text);

#endif
