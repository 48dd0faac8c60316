/* Where the probes of an image are in a process, and what is put into it for them. Stubs are in
 * islands.h, undo records in records.h, bells in bell.h. */
#ifndef DESCRY_LOAD_INPROC_PATCH_H
#define DESCRY_LOAD_INPROC_PATCH_H

#include "load/inproc/state/inproc_state.h"

/* sites.c: fills p->modules and p->sites; probes that cannot be placed become notes. */
struct err *sites_plan(struct inproc_engine *e, struct inproc_process *p);
char *sites_how(struct engine_scene *s, const struct probe *p,
		char **ret_note); /* engine_type.how */
struct err *sites_text(struct inproc_engine *e, struct object *o, struct text **ret);
/* Is a file that the probes are in mapped in the process? */
bool sites_any(struct inproc_engine *e, pid_t pid);
/* Once more, for probes that p is waiting for; fills *late, a process of its own. */
struct err *sites_plan_late(struct inproc_engine *e, struct inproc_process *p,
			    struct inproc_process *late);
void sites_free(struct inproc_process *p);

/* hooks.c */
/* Can this object not go away while the program runs? */
bool loads_stays(struct object *o);
/* May libraries come that probes wait for, or go that are probed? */
bool loads_may_change(const struct inproc_engine *e, const struct inproc_process *p);

/* extend.c */
/* Probes put into modules of a process that is attached: those that are there and not enabled. */
struct err *process_extend(struct inproc_engine *e, struct inproc_process *p);

/* guard.c: fault handlers in the process, so that reading its memory is a plain load. */
/* Do programs of the image read memory of the process? */
bool guard_wanted(const struct inproc_engine *e);
/* Handlers for SIGSEGV and SIGBUS, the program's own behind them. While it is stopped, mapped. */
struct err *guard_install(struct inproc_engine *e, const struct inproc_process *p,
			  struct control *c);

/* samples.c: after progs_compile() */
struct err *samples_start(struct inproc_engine *e);
bool samples_can(const struct probe *p);
/* The timer of a profile probe: threads that are due fire. */
void samples_take(struct inproc_engine *e, uint32_t prog, uint32_t probe, uint64_t period);
/* Is no thread of the stopped process on its way through a sample, with an address of the program
 * that is not in its registers? */
bool samples_quiet(const struct inproc_engine *e, struct control *c);
void samples_stop(struct inproc_engine *e);

#endif
