/* What a process is to us now: what the kernel says of it, and whether our memory is in it. */
#ifndef DESCRY_LOAD_INPROC_PROCESS_STATE_H
#define DESCRY_LOAD_INPROC_PROCESS_STATE_H

#include "load/inproc/state/inproc_state.h"

/* The nth number (0: the first; the last when there are fewer) behind `field` in /proc/PID/status;
 * 0 when there is none. */
enum { PROCESS_STATUS_LAST = 63 };
uint32_t process_status(pid_t pid, const char *field, int nth);

/* Writes how its stacks are walked to its place in the facts, if both are known. */
void process_walk(struct inproc_engine *e, const struct inproc_process *p);
/* Opens p->mem: it is attached, or about to go on as such. */
void process_open(struct inproc_process *p);
/* Is our shared memory mapped in it? */
bool process_has_area(const struct inproc_engine *e, pid_t pid);
/* Is our private memory still in it? False: it has executed another program. */
bool process_is_ours(const struct inproc_engine *e, pid_t pid);
/* Are our code and our memory in the process now? Not once it has executed another program, or
 * somebody has undone what we did; then nothing in it may be made to lead there. Holds on only
 * while a thread of it is stopped. */
bool process_holds(const struct inproc_engine *e, pid_t pid);
/* Does the program that was attached still run, without our memory? Of one that has executed
 * another, nothing is left. */
bool process_was_undone(const struct inproc_engine *e, const struct inproc_process *p);
/* May there be children that could not take the probes out? A traced process has filtered its
 * system calls, or says so before the tracer has seen it. */
static inline bool processes_filtered(const struct wire_area *a)
{
	const struct wire_said *said = (const struct wire_said *)a->said;
	bool any = a->filtered;

	for (uint32_t i = 0; i < a->process_count && i < WIRE_PROCESSES_MAX; i++)
		any |= __atomic_load_n(&said[i].quiet, __ATOMIC_ACQUIRE) != 0;
	return any;
}

#endif
