/* Undo records of a process's modules, and the patches that they describe. */
#ifndef DESCRY_LOAD_INPROC_RECORDS_H
#define DESCRY_LOAD_INPROC_RECORDS_H

#include "load/inproc/state/inproc_state.h"
#include "load/inproc/undo/undo.h"

/* Writes the undo records into the area and, sorted, into *log. Runs long before the process is
 * stopped: a reader ignores a record whose site still holds its original bytes. Covers the modules
 * that are mapped and not enabled. */
struct err *records_write(struct inproc_engine *e, struct inproc_process *p, struct undo_log *log);
/* Marks the mapped modules as patched, or about to be. From now on their records stay. */
void records_enabled(struct inproc_process *p);
/* Patches the stopped process. Adds a note with the number of places that could not be patched. */
struct err *records_patch(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			  struct undo_log *log);
/* Drops a module whose text is gone or was not patched after all. Keeps records that a forked child
 * may need. */
void process_forget(struct inproc_engine *e, struct inproc_process *p, uint32_t module);

#endif
