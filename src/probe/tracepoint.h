/* The kernel's tracepoints: what BTF says of them, and which subsystem each belongs to. Private to
 * src/probe/.
 *
 * Always true: existence and parameters come from BTF alone, which anyone may read; the subsystem
 * comes from tracefs and is "vmlinux" where tracefs cannot be read.
 */
#ifndef DESCRY_PROBE_TRACEPOINT_H
#define DESCRY_PROBE_TRACEPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/probe.h"

struct tracepoint {
	const char *name;
	type_id func;       /* TYPE_FUNC with the tracepoint's parameters */
	const char *system; /* "sched", "vmlinux" unknown; set by tracepoint_system() */
};

struct tracepoints;

/* All of them, in BTF order; *ret_n. Valid until probe_set_fini(). */
struct tracepoint *tracepoints_all(struct probe_set *ps, uint32_t *ret_n);
void tracepoints_free(struct tracepoints *t);
const char *tracepoint_system(struct probe_set *ps, struct tracepoint *tp);
/* Why a description with a subsystem matches none: it cannot be known here. NULL: it is not that.
 * malloc()ed. */
char *tracepoints_explain(struct probe_set *ps, const struct probe_desc *pd);
/* Whether this kernel has it; *ret_nparams may be NULL. */
bool tracepoint_exists(struct probe_set *ps, const char *name, uint32_t *ret_nparams);

/* A file of one of the kernel's own file systems; where it is not mounted, of a mount that is
 * attached nowhere, so that none is left behind. -1 when there is none to be had. */
int kernel_fs_open(const char *fs, const char *mounted_at, const char *path);
int tracefs_open(const char *path);

#endif
