/* Uprobes and patches at the same places. */
#ifndef DESCRY_LOAD_INPROC_CONFLICT_H
#define DESCRY_LOAD_INPROC_CONFLICT_H

#include "data/image.h"

/* Returns EBUSY when a uprobe of the image lies at a patch in a process that is traced from inside.
 * Looks only at processes in which the probes fire. *ret_all: false when there was no time for all
 * of them. Call it before the kernel engine's load(). */
struct err *inproc_conflict(const struct image *img, bool *ret_all);

#endif
