/* Shared by the files that find functions: find.c those of loaded objects, find_later.c those of
 * libraries that are not loaded yet. */
#ifndef DESCRY_CALLS_FIND_PRIVATE_H
#define DESCRY_CALLS_FIND_PRIVATE_H

#include "calls/calls.h"
#include "probe/process.h"

/* One process. */
struct finder {
	struct calls *c;
	struct probe_set *ps;
	pid_t pid;
	char process[16]; /* "$target", or its number */
	const struct process_objects *objects;
	struct returns *returns;
	VEC(struct probe *) slots;
	/* libraries that are not loaded, and that callers which are loaded later need */
	VEC(struct process_object) needed;
	struct hash searched;  /* names of libraries that were looked for, for `needed` */
	bool cut;              /* there were more names than FIND_SEARCHES_MAX */
	struct hash known;     /* name that is called -> its function, or NULL */
	uint32_t known_needed; /* of `needed`, when it was found */
	uint64_t looks;        /* objects that were searched for names */
	uint32_t nrets;        /* places of returns of all functions that are found so far */
};

/* find.c. loaded: the process maps the object. */
/* Returns the function of that name, which is made when it is new, or NULL when there are too many.
 * how: 'p' for calls through the PLT, 'x' for entries, 's' for system calls. */
struct calls_function *find_function(struct calls *c, const char *name, char how);
/* Returns the object's definition of a function, or NULL. */
const struct object_symbol *find_defines(const struct process_object *po, const char *name);
/* Adds calls of one object through its PLT. */
struct err *find_calls_of(struct finder *f, const struct process_object *caller, bool loaded);
/* Adds the object's functions that -x takes. Adds their number to *ret_n. */
struct err *find_entries_of(struct finder *f, const struct process_object *po, bool loaded,
			    uint32_t *ret_n);

/* around.c: adds the events of c->around. `of` has the targets. */
struct err *find_around(struct calls *c, struct probe_set *ps, const struct probe_set *of);

/* find_later.c */
/* The most names of libraries that are looked for because others need them. A search may go through
 * 200,000 files, and 4,096 libraries may need 64 others each. */
enum { FIND_SEARCHES_MAX = 256 };
/* Returns true when a library of this name is to be looked for: once. */
bool find_may_search(struct finder *f, const char *name);
/* Adds the functions of a rule of -x that no loaded object fulfils. */
struct err *find_later(struct finder *f, const struct calls_rule *r);
/* Adds the calls of a rule of -e whose caller is no loaded object. */
struct err *find_later_caller(struct finder *f, const struct calls_rule *r);

#endif
