/* What traced processes do next: they load libraries, execute programs, have children, end. */
#ifndef DESCRY_LOAD_INPROC_FOLLOW_H
#define DESCRY_LOAD_INPROC_FOLLOW_H

#include "load/inproc/state/inproc_state.h"

/* life.c: children and executed programs; call it now and then. */
void processes_look(struct inproc_engine *e);
/* The process, which may not be known yet, is stopped in a program that it has just executed:
 * traced from there. */
void process_executed(struct inproc_engine *e, pid_t pid, struct control *c);
/* It has executed a program whose libraries are not there yet, and runs: it is attached to when
 * they are. */
void process_slow(struct inproc_engine *e, pid_t pid);
/* What it has mapped stays known when it has ended, if the program prints names of its
 * addresses. */
void process_remember(struct inproc_engine *e, pid_t pid);
/* Children on the list that are new; how many, those that were not looked for in this round
 * included. */
uint32_t processes_adopt(struct inproc_engine *e);
/* At the end: children that are not followed, and could not take the probes out; how many were
 * restored. */
uint32_t processes_sweep(struct inproc_engine *e);
/* What processes say of themselves is looked for so often, until this is called again. */
void processes_round(struct inproc_engine *e);

/* loads.c */
/* Probes put into libraries that have come, forgotten in those that have gone; call it now and
 * then. */
void loads_look(struct inproc_engine *e);

/* execs.c: threads that are about to execute another program, and are followed into it. */
/* A thread (its number in its own name space) has come there, with this path. */
void execs_asked(struct inproc_engine *e, pid_t own_tid, uint64_t path);
/* Those that have executed it are traced again; stays with the others for some milliseconds. Call
 * it often. */
void execs_look(struct inproc_engine *e);
/* Is a thread of the process followed? Then it cannot be stopped otherwise. */
bool execs_pending(const struct inproc_engine *e, pid_t pid);
void execs_stop(struct inproc_engine *e);

/* forging.c */
/* While the program is loaded: may its actions be done for the processes that are named? */
struct err *forging_check(struct inproc_engine *e);
/* The same of addresses that a child which is followed could choose; when it is compiled. */
struct err *forging_check_addresses(const struct inproc_engine *e);
/* Before records are taken: has a traced process become a stranger since it was attached to? */
void forging_look(struct inproc_engine *e);
/* It is not attached any more, and lives: its memory may still be ours. */
void forging_left(struct inproc_engine *e, pid_t pid);
/* Is it a record whose actions are not done any more? */
bool forging_refuses(const struct inproc_engine *e, const struct wire_record *r);

/* inproc_unwind.c */
struct err *unwind_start(struct inproc_engine *e);
void unwind_add(struct inproc_engine *e, pid_t pid);
void unwind_refresh(struct inproc_engine *e);
void unwind_stop(struct inproc_engine *e);

#endif
