/* What the files share that plan the places of one process for sites_plan(). */
#ifndef DESCRY_LOAD_INPROC_PLAN_PRIVATE_H
#define DESCRY_LOAD_INPROC_PLAN_PRIVATE_H

#include "load/inproc/state/inproc_state.h"

struct plan; /* of sites.c */

/* The module of an executable mapping; a site with one point of it. */
struct err *plan_module(struct plan *pl, uint32_t map, uint32_t *ret);
void plan_site(struct plan *pl, uint32_t module, const struct text_site *s,
	       const struct inproc_point *p);

/* syscalls.c: what is there for sites_plan() to place; notes about what is not. */
struct err *syscalls_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
			  const struct mappings *maps);

/* hooks.c */
/* For sites_plan(): the place in the dynamic linker, when libraries may come or go that matter. */
struct err *loads_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* For sites_plan(): the place in the C library. */
struct err *execs_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* For sites_plan(): places where a filter may be put in. In a C library's functions; at a system
 * call of a program without one. */
struct err *seccomp_functions(struct inproc_process *p, struct plan *pl, uint32_t module);
void seccomp_site(struct plan *pl, uint32_t module, const struct text_syscall *s);

/* samples.c */
/* For sites_plan(): is it a process that can be sampled? */
void samples_plan(struct inproc_engine *e, struct inproc_process *p, const struct mappings *maps);

#endif
