/* Uprobes and patches at the same places. */
#ifndef DESCRY_LOAD_INPROC_CONFLICT_H
#define DESCRY_LOAD_INPROC_CONFLICT_H

#include "data/image.h"

/* EBUSY when a uprobe of the image is where a process that is traced from inside has been patched.
 * Before the kernel engine's load(). */
struct err *inproc_conflict(const struct image *img);

#endif
