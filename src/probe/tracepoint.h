/* The kernel's tracepoints: their description in BTF and the subsystem of each. Private to
 * src/probe/.
 *
 * Always true: existence and parameters come from BTF alone, which every user may read. The
 * subsystem comes from tracefs; it is "vmlinux" where tracefs cannot be read.
 */
#ifndef DESCRY_PROBE_TRACEPOINT_H
#define DESCRY_PROBE_TRACEPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/probe.h"

struct tracepoint {
	const char *name;
	type_id func;       /* TYPE_FUNC with the tracepoint's parameters */
	const char *system; /* "sched"; "vmlinux" when unknown; set by tracepoint_system() */
};

struct tracepoints;

/* Returns all tracepoints in BTF order; *ret_n is their number. Valid until probe_set_fini(). */
struct tracepoint *tracepoints_all(struct probe_set *ps, uint32_t *ret_n);
void tracepoints_free(struct tracepoints *t);
const char *tracepoint_system(struct probe_set *ps, struct tracepoint *tp);
/* Returns the text of events/SYSTEM/NAME/format in tracefs, malloc()ed. */
struct err *tracepoint_format(struct probe_set *ps, const char *system, const char *name,
			      char **ret);
/* Explains why a description with a subsystem matches nothing when tracefs cannot be read here.
 * NULL: another cause. malloc()ed. */
char *tracepoints_explain(struct probe_set *ps, const struct probe_desc *pd);
/* Returns true when this kernel has the tracepoint. ret_nparams may be NULL. */
bool tracepoint_exists(struct probe_set *ps, const char *name, uint32_t *ret_nparams);

/* Opens a file of a kernel file system such as tracefs. Where the file system is not mounted,
 * opens it in a mount that is attached nowhere, so that no mount is left behind. Returns -1 on
 * failure. */
int kernel_fs_open(const char *fs, const char *mounted_at, const char *path);

#endif
