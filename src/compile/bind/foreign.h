/* Words of other tracers (bpftrace, perf, SystemTap) and their equivalents in D: hints behind an
 * error. */
#ifndef DESCRY_COMPILE_BIND_FOREIGN_H
#define DESCRY_COMPILE_BIND_FOREIGN_H

#include "probe/probe.h"

/* Returns the hint for a variable or function of this name, or NULL when no other tracer has it. */
const char *foreign_word(const char *name);
/* Returns the hint for a probe description in another tracer's form ("kprobe:vfs_read"), or
 * NULL. */
const char *foreign_probe(const struct probe_desc *pd);

#endif
