/* What this machine is and how its switches stand.
 *
 * In: /proc, /sys, clocks, the audit socket. Out: rows {name, value, what it does, the program that
 * measures it}.
 */
#ifndef DESCRY_CHECK_MACHINE_H
#define DESCRY_CHECK_MACHINE_H

#include "check/table.h"

/* User, capabilities, container, kernel, what is mounted, what restricts tracing. */
void machine_here(struct check_table *ret);
/* Mitigations, audit, HZ, tickless, huge pages, frequency, steal time. */
void machine_switches(struct check_table *ret);

#endif
