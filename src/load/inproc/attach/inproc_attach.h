/* Attaches to processes and detaches from them: maps the engine's memory into them and patches
 * them, and removes both. */
#ifndef DESCRY_LOAD_INPROC_ATTACH_H
#define DESCRY_LOAD_INPROC_ATTACH_H

#include "load/inproc/state/inproc_state.h"

/* inproc_attach.c */
/* Fills the process's entry in the area, number p->index. */
void process_describe(struct inproc_engine *e, const struct inproc_process *p);
/* Lists the process's readable mappings in the facts, for the agent. */
struct err *process_ranges(struct inproc_engine *e, struct inproc_process *p);
/* Plans only: checks that the process may be traced, and finds its probes. */
struct err *process_plan(struct inproc_engine *e, pid_t pid);
struct err *process_attach(struct inproc_engine *e, pid_t pid);
/* Does the same for e->processes.v[i], which is new or has executed a new program. Uses up
 * e->family.caught. */
struct err *process_enter(struct inproc_engine *e, uint32_t i);
void process_free(struct inproc_process *p);
struct err *process_detach(struct inproc_engine *e, struct inproc_process *p);
/* Removes all of this tracer's patches and mappings from a process, traced or not. */
struct err *process_restore(struct inproc_engine *e, pid_t pid);

/* suits.c */
/* Refuses a process whose memory another process has, too: it would run in text that is being
 * changed. */
struct err *attach_check_alone(pid_t pid);
/* Refuses a stopped process in which descry's mappings would be locked and filled. Finds out if it
 * has switched the processor's counter off. page: the address of a free page there. */
struct err *attach_check_suits(struct control *c, uint64_t page, bool *ret_no_counter);

/* seccomp.c */
/* Checks that the process can be traced without system calls of the agent, if seccomp filters
 * demand that. Fills p->filtered and p->quiet. */
struct err *seccomp_check(const struct inproc_engine *e, struct inproc_process *p);
/* Checks the same for a stopped process, which may have installed a filter since. */
struct err *seccomp_check_again(const struct inproc_engine *e, struct inproc_process *p,
				const struct control *c);
/* Checks the same for a plan, where another engine may be available. */
struct err *seccomp_plan(const struct inproc_engine *e, struct inproc_process *p);
/* Returns the first contents of the process's struct wire_kept. */
struct wire_kept seccomp_kept(const struct inproc_process *p);
/* Checks whether the process filters its system calls, and writes the facts that its threads cannot
 * query into the area. Call it now and then. attached: number of attached processes. */
void seccomp_look(struct inproc_engine *e, struct inproc_process *p, uint32_t attached);
/* Returns true when processes wait for facts from the tracer. */
bool seccomp_any(const struct inproc_engine *e);

#endif
