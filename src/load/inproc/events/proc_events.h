/* Provider proc: events of traced processes, fired in them, or by the tracer for a thread that does
 * not live to tell. */
#ifndef DESCRY_LOAD_INPROC_PROC_EVENTS_H
#define DESCRY_LOAD_INPROC_PROC_EVENTS_H

#include "load/inproc/state/inproc_state.h"

bool events_can(const struct probe *p);
/* The nth kind of stubs that the probe needs, and at which system calls. False: no more. */
bool events_calls(const struct probe *p, uint32_t n, enum wire_stub_kind *ret_kind,
		  uint64_t ret_bits[WIRE_SYSCALL_MAX / 64]);
/* Is it the program that keeps what `errno` is in user code? It runs behind every system call, and
 * has no probes. */
bool events_is_errno(const struct image_prog *p);
/* Bits: kinds of stubs (from WIRE_STUB_EVENTS) that the program is for. */
uint32_t events_of(const struct image *img, uint32_t prog);
/* Room in the slots, when there are probes that need it; while the area is laid out. */
struct err *events_lay_out(struct inproc_engine *e, const struct image *img);
void events_free(struct inproc_engine *e);
/* Threads that wait for an answer get it. */
void events_answer(struct inproc_engine *e);
/* A futex that is woken when one does, and its value as seen last; from now on they may wait. NULL:
 * none will. */
uint32_t *events_bell(struct inproc_engine *e, uint32_t *ret_seen);
void events_stop(struct inproc_engine *e);
/* Stays, for some milliseconds, with processes that are about to execute another program. */
void events_hurry(struct inproc_engine *e);
/* It has executed another program; before what was known of it is forgotten. */
void events_exec(struct inproc_engine *e, struct inproc_process *p);
/* The same for a child that was not known: it was made by vfork(2), and nothing of it has fired. */
void events_exec_first(struct inproc_engine *e, pid_t pid);
/* Before it is patched: threads that are there. */
void events_begin(struct inproc_engine *e, struct inproc_process *p);
/* Now and then: threads that are there, or the ends of those that were. */
void events_watch(struct inproc_engine *e, struct inproc_process *p);
void events_forget(struct inproc_process *p);
/* A child that was to be followed, number `index` in the list, has ended before it was looked at,
 * if it has. */
void events_lost(struct inproc_engine *e, uint32_t index, pid_t pid);

#endif
