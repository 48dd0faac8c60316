/* Finds the places of an image's probes in a process, and changes the process for them. Stubs are
 * in islands.h, undo records in records.h, bells in bell.h. */
#ifndef DESCRY_LOAD_INPROC_PATCH_H
#define DESCRY_LOAD_INPROC_PATCH_H

#include "load/inproc/state/inproc_state.h"

/* sites.c: fills p->modules and p->sites; probes that cannot be placed become notes. */
struct err *sites_plan(struct inproc_engine *e, struct inproc_process *p);
char *sites_how(struct engine_scene *s, const struct probe *p,
		char **ret_note); /* engine_type.how */
struct err *sites_text(struct inproc_engine *e, struct object *o, struct text **ret);
/* Returns true when a file with probes is mapped in the process. */
bool sites_any(struct inproc_engine *e, pid_t pid);
/* Plans again, for the probes whose files p does not have yet. Fills *late, which is a separate
 * struct inproc_process. */
struct err *sites_plan_late(struct inproc_engine *e, struct inproc_process *p,
			    struct inproc_process *late);
void sites_free(struct inproc_process *p);

/* hooks.c */
/* Returns true for an object that stays mapped while the program runs. */
bool loads_stays(struct object *o);
/* Returns true when the process may load libraries that probes wait for, or unload libraries that
 * have probes. */
bool loads_may_change(const struct inproc_engine *e, const struct inproc_process *p);

/* extend.c */
/* Adds probes to modules of an attached process: those that are mapped and not enabled. */
struct err *process_extend(struct inproc_engine *e, struct inproc_process *p);

/* guard.c: fault handlers in the process, so that reading its memory is a plain load. */
/* Do programs of the image read memory of the process? */
bool guard_wanted(const struct inproc_engine *e, const struct mappings *maps);
/* Handlers for SIGSEGV and SIGBUS, the program's own behind them. While it is stopped, mapped. */
struct err *guard_install(struct inproc_engine *e, const struct inproc_process *p,
			  struct control *c);

/* samples.c: after progs_compile() */
struct err *samples_start(struct inproc_engine *e);
bool samples_can(const struct probe *p);
/* Runs at the timer of a profile probe: lets the threads fire that have used a period. */
void samples_take(struct inproc_engine *e, uint32_t prog, uint32_t probe, uint64_t period);
/* Returns true when no thread of the stopped process is inside a sample. Such a thread has an
 * address of the program outside its registers. */
bool samples_quiet(const struct inproc_engine *e, struct control *c);
void samples_stop(struct inproc_engine *e);

#endif
