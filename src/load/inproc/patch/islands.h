/* Islands: chooses the places of stubs in a process, and writes the stubs. */
#ifndef DESCRY_LOAD_INPROC_ISLANDS_H
#define DESCRY_LOAD_INPROC_ISLANDS_H

#include "load/inproc/patch/ranges.h"
#include "load/inproc/state/inproc_state.h"

/* Makes a memory file for islands. Returns -1 and sets errno on failure. */
int island_file(const struct inproc_engine *e, uint64_t size);
/* Returns the largest number of bytes that the module's stubs need. */
uint64_t island_room(const struct inproc_engine *e, const struct inproc_process *p,
		     const struct inproc_module *m);
/* Chooses a place for a module's stubs, and adds it to *r. The stubs lie from *at on in the file. A
 * module that is back at an old address gets its old island and records. A module that has just
 * been unmapped gets none, and is marked `gone`. */
struct err *island_place(struct inproc_engine *e, struct inproc_process *p, struct inproc_module *m,
			 struct ranges *r, int fd, uint64_t *at);
struct err *island_write_stubs(struct inproc_engine *e, struct inproc_process *p,
			       struct inproc_module *m);
/* Puts programs to sleep whose guards are all 0, and wakes the others. Called when the
 * tracer has run programs that may set guards. */
void islands_turn(struct inproc_engine *e);
/* Chooses each module's island and writes its stubs into one memory file. */
struct err *islands_prepare(struct inproc_engine *e, struct inproc_process *p);

#endif
