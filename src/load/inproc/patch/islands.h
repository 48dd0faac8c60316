/* Stubs: where in a process they lie, and what is in them. */
#ifndef DESCRY_LOAD_INPROC_ISLANDS_H
#define DESCRY_LOAD_INPROC_ISLANDS_H

#include "load/inproc/state/inproc_state.h"

struct range {
	uint64_t lo, hi;
	bool readable;
};
struct ranges {
	VEC(struct range) list;
};

/* Every mapping, in address order. */
struct err *ranges_read(pid_t pid, struct ranges *ret);

/* A memory file for islands; -1 and errno. */
int island_file(const struct inproc_engine *e, uint64_t size);
/* Bytes that a module's stubs need at most. */
uint64_t island_room(const struct inproc_engine *e, const struct inproc_process *p,
		     const struct inproc_module *m);
/* A place for a module's stubs, which becomes part of *r; they come from *at on in the file. A
 * module that is where it was before gets what it had there, with its records. One that has just
 * been unmapped gets none: it is `gone`. */
struct err *island_place(struct inproc_engine *e, struct inproc_process *p, struct inproc_module *m,
			 struct ranges *r, int fd, uint64_t *at);
struct err *island_write_stubs(struct inproc_engine *e, struct inproc_process *p,
			       struct inproc_module *m);
/* Chooses each module's island and writes its stubs into one memory file. */
struct err *islands_prepare(struct inproc_engine *e, struct inproc_process *p);

#endif
