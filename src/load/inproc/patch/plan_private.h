/* Shared by the files that plan the places of one process for sites_plan(). */
#ifndef DESCRY_LOAD_INPROC_PLAN_PRIVATE_H
#define DESCRY_LOAD_INPROC_PLAN_PRIVATE_H

#include "load/inproc/state/inproc_state.h"

struct plan; /* of sites.c */

/* plan_module() returns the module of an executable mapping. plan_site() adds a site with one
 * point. */
struct err *plan_module(struct plan *pl, uint32_t map, uint32_t *ret);
void plan_site(struct plan *pl, uint32_t module, const struct text_site *s,
	       const struct inproc_point *p);

/* --- wishes.c --- */
struct wishes {
	struct hash seen;
	uint64_t looked; /* switches and lists that were looked up, for tests */
};
/* Adds the switches by which the module checks that a probe is wanted. */
void wishes_add(struct wishes *w, struct inproc_process *p, uint32_t module,
		const struct probe *pr);
void wishes_fini(struct wishes *w);

/* syscalls.c: plans the system call instructions; adds notes about those that cannot be patched. */
struct err *syscalls_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
			  const struct mappings *maps);

/* hooks.c */
/* For sites_plan(): plans the place in the dynamic linker, when libraries with probes may come or
 * go. */
struct err *loads_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* For sites_plan(): plans the place in the C library's execve(). */
struct err *execs_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps);
/* For sites_plan(): plans the places where a filter may be installed: functions of a C library, or
 * system calls of a program without one. */
struct err *seccomp_functions(struct inproc_process *p, struct plan *pl, uint32_t module);
void seccomp_site(struct plan *pl, uint32_t module, const struct text_syscall *s);

/* samples.c */
/* For sites_plan(): checks whether the process can be sampled. */
void samples_plan(struct inproc_engine *e, struct inproc_process *p, const struct mappings *maps);

#endif
