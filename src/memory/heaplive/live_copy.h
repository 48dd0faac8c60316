/* What the sources of this folder have in common: the copy, and the runtime over it. Private to
 * this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H
#define DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H

#include "memory/copy/memory_copy.h"
#include "program/runtime/runtime.h"

struct graph;

/* For struct heap_source. */
struct err *live_copy(struct space *s, struct memory_room *room, void **ret);
void live_copy_free(void *copy);
typedef struct err *live_reader(struct memory_copy *c, struct runtime *r, struct graph *g);
/* Calls `read` with the interpreter as it was at the moment of the copy. Returns its error, or that
 * there is no interpreter of this type. */
struct err *live_read(struct memory_copy *c, struct space *s, const struct runtime_type *type,
		      live_reader *read, struct graph *g);

#endif
