/* The present state of a process: the kernel's facts, and whether this tracer's memory is mapped in
 * it. */
#ifndef DESCRY_LOAD_INPROC_PROCESS_STATE_H
#define DESCRY_LOAD_INPROC_PROCESS_STATE_H

#include "load/inproc/state/inproc_state.h"

/* Writes the way to walk the process's stacks into the facts, if that and its place are known. */
void process_walk(struct inproc_engine *e, const struct inproc_process *p);
/* Returns true when this tracer is attached to a process of this number. */
bool process_is_attached(const struct inproc_engine *e, pid_t pid);
/* Opens p->mem. The process is attached, or about to be. */
void process_open(struct inproc_process *p);
/* Returns true when this tracer's shared memory is mapped in the process. */
bool process_has_area(const struct inproc_engine *e, pid_t pid);
/* Returns true when this tracer's private memory is still mapped in the process. False: it has
 * executed another program. */
bool process_is_ours(const struct inproc_engine *e, pid_t pid);
/* Returns true when the code and the memory are mapped in the process. They are not once it has
 * executed another program or another program has undone the attach. Nothing in the process may be
 * directed to the code then. The result holds only while a thread of the process is stopped. */
bool process_holds(const struct inproc_engine *e, pid_t pid);
/* Returns true when the attached program still runs, without this tracer's memory. Returns false
 * after an execve(2), which removes everything. */
bool process_was_undone(const struct inproc_engine *e, const struct inproc_process *p);
/* Returns true when there may be children that could not restore themselves, because a traced
 * process filters its system calls. A process may have set `quiet` before the tracer has seen the
 * filter. */
static inline bool processes_filtered(const struct wire_area *a)
{
	const struct wire_said *said = (const struct wire_said *)a->said;
	bool any = a->filtered;

	for (uint32_t i = 0; i < a->process_count && i < WIRE_PROCESSES_MAX; i++)
		any |= __atomic_load_n(&said[i].quiet, __ATOMIC_ACQUIRE) != 0;
	return any;
}

#endif
