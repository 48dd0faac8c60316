/* Follows later events of traced processes: they load libraries, execute programs, have children,
 * end. */
#ifndef DESCRY_LOAD_INPROC_FOLLOW_H
#define DESCRY_LOAD_INPROC_FOLLOW_H

#include "load/inproc/state/inproc_state.h"

/* life.c: looks for new children, executed programs and ends of processes. Call it now and then. */
void processes_look(struct inproc_engine *e);
/* Traces a process from the program that it has just executed, in which it is stopped, or hands it
 * over to the engine's caller. The process may be unknown so far. Takes ownership of c. */
void process_executed(struct inproc_engine *e, pid_t pid, struct control *c);
/* Traces a process that this engine or another one has handed over: as engine_ops.enter. */
struct err *process_take(struct inproc_engine *e, pid_t pid, pid_t like, struct control *c);
/* Notes a process that runs a new program whose libraries are not mapped yet. processes_look()
 * attaches to it when they are. */
void process_slow(struct inproc_engine *e, pid_t pid);
/* Keeps the process's mappings after its end, if the program prints names of its addresses. */
void process_remember(struct inproc_engine *e, pid_t pid);
/* Adds new children from the list of processes. Returns their number, including those that this
 * round had no time to look for. */
uint32_t processes_adopt(struct inproc_engine *e);
/* Call it at the end. Restores children that are not followed and could not restore themselves,
 * until `end` (CLOCK_MONOTONIC ns). Returns their number, plus 1 when it could not look at all. */
uint32_t processes_sweep(struct inproc_engine *e, uint64_t end);
/* Starts a round: permits the number of searches of /proc that one round may make, and forgets what
 * process_has_area() has found in the one before. */
void processes_round(struct inproc_engine *e);

/* overwritten.c: says which places of a process no longer hold descry's patches. */
void changed_look_at(struct inproc_engine *e, struct inproc_process *p);

/* loads.c */
/* Adds probes to libraries that have been loaded, and drops those of libraries that have been
 * unloaded. Call it now and then. */
void loads_look(struct inproc_engine *e);

/* twice.c */
/* Says which files a process has mapped twice. Call it now and then. */
void twice_look(struct inproc_engine *e);
/* The same for one process, before the detach. */
void twice_look_at(struct inproc_engine *e, struct inproc_process *p);

/* leaving.c */
/* Detaches from processes in which descry cannot stay. Call it often: a thread waits for it. */
void leaving_look(struct inproc_engine *e);

/* execs.c: follows threads that are about to execute another program into that program. */
/* Handles the bell of a thread that has reached execve(2) with this path. own_tid: its number in
 * its own pid namespace. */
void execs_asked(struct inproc_engine *e, pid_t own_tid, uint64_t path);
/* Traces the threads that have executed a program, and waits some milliseconds for the others. Call
 * it often. */
void execs_look(struct inproc_engine *e);
/* Returns true when a thread of the process is followed by ptrace(2). The process cannot be stopped
 * in another way then. */
bool execs_pending(const struct inproc_engine *e, pid_t pid);
void execs_stop(struct inproc_engine *e);

/* forging.c */
/* Returns an error when the program has actions that a named process could choose. Call it while
 * the program is loaded. */
struct err *forging_check(struct inproc_engine *e);
/* Returns true when a process could choose an address that the compiled programs read. */
bool forging_steered(const struct inproc_engine *e);
/* Returns an error when the program has addresses that a followed child could choose. Call it while
 * the program is compiled. */
struct err *forging_check_addresses(const struct inproc_engine *e);
/* Checks whether a traced process has got other rights than descry's user since the attach. Call it
 * before records are taken. */
void forging_look(struct inproc_engine *e);
/* Notes a process that is not attached any more but lives, and may still have the shared memory. */
void forging_left(struct inproc_engine *e, pid_t pid);
/* Returns true for a record whose actions are refused from now on. */
bool forging_refuses(const struct inproc_engine *e, const struct wire_record *r);

/* inproc_unwind.c */
struct err *unwind_start(struct inproc_engine *e);
void unwind_add(struct inproc_engine *e, pid_t pid);
void unwind_refresh(struct inproc_engine *e);
/* Reads the names of code objects that walks met. Returns true when there were requests. */
bool unwind_learn(struct inproc_engine *e);
void unwind_stop(struct inproc_engine *e);

#endif
