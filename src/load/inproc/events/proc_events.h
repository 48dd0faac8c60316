/* Provider proc: fires events of traced processes. Most fire in the thread itself. The tracer fires
 * the events for which the thread cannot run a program any more. */
#ifndef DESCRY_LOAD_INPROC_PROC_EVENTS_H
#define DESCRY_LOAD_INPROC_PROC_EVENTS_H

#include "load/inproc/state/inproc_state.h"

bool events_can(const struct probe *p);
/* Returns the nth kind of stubs that the probe needs, and the system calls that need it. Returns
 * false when there are no more. */
bool events_calls(const struct probe *p, uint32_t n, enum wire_stub_kind *ret_kind,
		  uint64_t ret_bits[WIRE_SYSCALL_MAX / 64]);
/* Returns true for the program that keeps the value of `errno` for probes of user code. It runs
 * behind every system call, and has no probes. */
bool events_is_errno(const struct image_prog *p);
/* Returns the kinds of stubs that the program is for, as bits (from WIRE_STUB_EVENTS). */
uint32_t events_of(const struct image *img, uint32_t prog);
/* Reserves room in the slots when the image has probes that need it. Call it while the area is laid
 * out. */
struct err *events_lay_out(struct inproc_engine *e, const struct image *img);
void events_free(struct inproc_engine *e);
/* Answers the threads that wait for a stand-in. */
void events_answer(struct inproc_engine *e);
/* Returns a futex that a thread wakes when it requests a stand-in, and the futex's last value. From
 * now on threads may wait. NULL: no thread will request one. */
uint32_t *events_bell(struct inproc_engine *e, uint32_t *ret_seen);
void events_stop(struct inproc_engine *e);
/* Watches processes that are about to execute another program, for some milliseconds. */
void events_hurry(struct inproc_engine *e);
/* Fires exec-success for a process that has executed another program. Call it before the process's
 * old facts are dropped. */
void events_exec(struct inproc_engine *e, struct inproc_process *p);
/* Does the same for a child of vfork(2) that the tracer did not know and in which no probe has
 * fired. */
void events_exec_first(struct inproc_engine *e, pid_t pid);
/* Notes the threads that exist. Call it before the process is patched. */
void events_begin(struct inproc_engine *e, struct inproc_process *p);
/* Notes new threads, and fires the ends of threads that have ended. Call it now and then. */
void events_watch(struct inproc_engine *e, struct inproc_process *p);
void events_forget(struct inproc_process *p);
/* Fires the end of a child that was to be followed, number `index` in the list, if the child has
 * ended before the tracer attached to it. */
void events_lost(struct inproc_engine *e, uint32_t index, pid_t pid);

#endif
