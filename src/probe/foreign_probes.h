/* Names of illumos, FreeBSD and macOS in probe descriptions. Private to src/probe/.
 *
 * Only whole names that Linux does not have are translated. A pattern matches Linux's names only.
 */
#ifndef DESCRY_PROBE_FOREIGN_PROBES_H
#define DESCRY_PROBE_FOREIGN_PROBES_H

#include "probe/probe.h"

/* Returns Linux's name of another system's call: "execve" for "exece". NULL: no other system has
 * it. */
const char *foreign_syscall(const char *name);
/* Returns "exece (illumos)" for -l -v; joins several names. NULL: the call has no other names. */
const char *foreign_names_of(struct probe_set *ps, const char *syscall);
/* Returns the same description with Linux's names. */
struct probe_desc foreign_translate(const struct probe_desc *pd);
#endif
