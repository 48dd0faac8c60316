/* Uprobes and patches at the same places. */
#ifndef DESCRY_LOAD_INPROC_CONFLICT_H
#define DESCRY_LOAD_INPROC_CONFLICT_H

#include "data/image.h"

/* Returns EBUSY when a uprobe of the image lies at a patch in a process that is traced from inside,
 * and when this cannot be found out in some seconds. Looks only at processes in which the uprobes
 * are put: all of them with -x follow. Call it before the kernel engine's load(). */
struct err *inproc_conflict(const struct image *img);

#endif
