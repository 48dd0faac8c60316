/* Processes that get the engine's memory and patches, and lose them again. */
#ifndef DESCRY_LOAD_INPROC_ATTACH_H
#define DESCRY_LOAD_INPROC_ATTACH_H

#include "load/inproc/state/inproc_state.h"

/* inproc_attach.c */
/* Fills its entry in the area, number p->index. */
void process_describe(struct inproc_engine *e, const struct inproc_process *p);
/* Reads what of it can be read, for the agent. */
struct err *process_ranges(struct inproc_engine *e, struct inproc_process *p);
/* Plans only: may it be traced, and where are the probes. */
struct err *process_plan(struct inproc_engine *e, pid_t pid);
struct err *process_attach(struct inproc_engine *e, pid_t pid);
/* The same for e->processes.v[i], which is new, or is again. Uses up e->family.caught. */
struct err *process_enter(struct inproc_engine *e, uint32_t i);
void process_free(struct inproc_process *p);
struct err *process_detach(struct inproc_engine *e, struct inproc_process *p);
/* All that is ours out of a process that has it, traced or not. */
struct err *process_restore(struct inproc_engine *e, pid_t pid);

/* seccomp.c */
/* Can a process be traced without system calls of the agent, if it must be? Fills p->filtered and
 * p->quiet. */
struct err *seccomp_check(const struct inproc_engine *e, struct inproc_process *p);
/* The same of a stopped process that may have put a filter in since. */
struct err *seccomp_check_again(const struct inproc_engine *e, struct inproc_process *p);
/* The same, where another engine may be had. */
struct err *seccomp_plan(const struct inproc_engine *e, struct inproc_process *p);
/* What the agent keeps in the process, at first. */
struct wire_kept seccomp_kept(const struct inproc_process *p);
/* Looks whether it filters, and tells its threads what they cannot ask; call it now and then.
 * attached: processes that are. */
void seccomp_look(struct inproc_engine *e, struct inproc_process *p, uint32_t attached);
/* Are there processes that wait for the tracer to tell them something? */
bool seccomp_any(const struct inproc_engine *e);

#endif
