/* Undo records of a process's modules, and what they say put into it. */
#ifndef DESCRY_LOAD_INPROC_RECORDS_H
#define DESCRY_LOAD_INPROC_RECORDS_H

#include "load/inproc/state/inproc_state.h"
#include "load/inproc/undo/undo.h"

/* The undo records, in the area and, sorted, in *log: long before the process is stopped. A site
 * that holds what it held is none to anyone who reads them. Of the modules that are there and not
 * enabled. */
struct err *records_write(struct inproc_engine *e, struct inproc_process *p, struct undo_log *log);
/* What is there is patched, or about to be: from now on its records stay. */
void records_enabled(struct inproc_process *p);
/* Into the stopped process; a note says how many places it was not. */
struct err *records_patch(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			  struct undo_log *log);
/* The module's text is gone, or it has not been patched after all. Records that a forked child may
 * need stay. */
void process_forget(struct inproc_engine *e, struct inproc_process *p, uint32_t module);

#endif
