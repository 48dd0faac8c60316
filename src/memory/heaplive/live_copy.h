/* What the sources of this folder have in common: the copy, and the runtime over it. Private to
 * this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H
#define DESCRY_MEMORY_HEAPLIVE_LIVE_COPY_H

#include "memory/copy/memory_copy.h"
#include "program/runtime/runtime.h"

/* Returns true when the space has an interpreter of this type. With `unknown`, also when it has an
 * interpreter that descry does not know, so that live_open() returns the error. */
bool live_has(struct space *s, const struct runtime_type *type, bool unknown);
/* For struct heap_source. */
struct err *live_copy(struct space *s, void **ret);
void live_copy_free(void *copy);
/* Opens the interpreter as it was at the moment of the copy. *ret_space must be freed after the
 * runtime. */
struct err *live_open(const struct memory_copy *c, struct space *s, const struct runtime_type *type,
		      struct space **ret_space, struct runtime **ret);

#endif
