/* Words of other tracers (bpftrace, perf, SystemTap) and what they are in D: hints behind an
 * error. */
#ifndef DESCRY_COMPILE_BIND_FOREIGN_H
#define DESCRY_COMPILE_BIND_FOREIGN_H

#include "probe/probe.h"

/* The hint for a variable or function of that name; NULL: no other tracer has it. */
const char *foreign_word(const char *name);
/* The hint for a probe description that begins as another tracer's do ("kprobe:vfs_read"); NULL: it
 * does not. */
const char *foreign_probe(const struct probe_desc *pd);

#endif
