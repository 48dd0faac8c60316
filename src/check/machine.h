/* Facts about this machine and the state of its settings.
 *
 * In: /proc, /sys, clocks, the audit socket. Out: rows {name, value, effect, the program that
 * measures it}. */
#ifndef DESCRY_CHECK_MACHINE_H
#define DESCRY_CHECK_MACHINE_H

#include "check/table.h"

/* Lists user, capabilities, container, kernel, mounts, and restrictions of tracing. */
void machine_here(struct check_table *ret);
/* Lists mitigations, audit, HZ, tickless, huge pages, frequency, steal time. */
void machine_switches(struct check_table *ret);

#endif
