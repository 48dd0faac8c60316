/* A stand-in for a process's struct task_struct, for programs that do not run in the kernel: a readable copy with what the
 * D libraries ask of one: ids, names, parent, credentials, where the arguments are; all else is 0, and all of it where
 * there is no BTF.
 */
#ifndef DESCRY_LOAD_TASK_H
#define DESCRY_LOAD_TASK_H

#include <sys/types.h>

#include "program/type/type.h"

struct task_memory {
	/* size bytes of zeroed memory that programs may read; they stay until the engine ends */
	uint8_t *(*alloc)(void *arg, uint64_t size);
	void *arg;
};

/* Of a process that has gone: what can still be known. types may be NULL. The address of the task_struct. */
uint64_t task_stand_in(struct type_graph *types, pid_t pid, const struct task_memory *mem);

#endif
