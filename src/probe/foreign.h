/* Names of other systems in probe descriptions: illumos, FreeBSD, macOS. Private to src/probe/.
 *
 * Only names that Linux does not have are changed, and only whole ones: a pattern means what Linux
 * calls so.
 */
#ifndef DESCRY_PROBE_FOREIGN_H
#define DESCRY_PROBE_FOREIGN_H

#include "probe/probe.h"

/* "genunix", "mach_kernel": the kernel there. */
bool foreign_is_kernel(const char *module);
/* "exece" -> "execve"; NULL: no other system's name. */
const char *foreign_syscall(const char *name);
/* "exece (illumos)", for -l -v; several are joined. NULL: none. */
const char *foreign_names_of(struct probe_set *ps, const char *syscall);
/* The same description in our words. */
struct probe_desc foreign_translate(const struct probe_desc *pd);
#endif
