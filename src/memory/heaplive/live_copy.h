/* What the sources of this folder have in common: the runtime over a copy. Private to this
 * folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H
#define DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H

#include "memory/copy/memory_copy.h"
#include "program/runtime/runtime.h"

struct graph;

typedef struct err *live_reader(struct memory_copy *c, struct runtime *r, struct graph *g);
/* Calls `read` with the interpreter as it was at the moment of the copy. Returns its error, or that
 * there is no interpreter of this type. */
struct err *live_read(struct memory_copy *c, struct space *s, const struct runtime_type *type,
		      live_reader *read, struct graph *g);

#endif
