/* A small process that waits for the tracer's end and then takes out of every traced process what
 * the tracer left there.
 *
 * In: the area, in this process's own mapping. Out: a process named descry-watch, in a session of
 * its own, deaf to the signals that end a session, with no descriptor but a pidfd of the tracer.
 * Always true: it prints nothing, changes nothing while the tracer lives, and ends after the tracer
 * has.
 */
#ifndef DESCRY_LOAD_INPROC_WATCHDOG_H
#define DESCRY_LOAD_INPROC_WATCHDOG_H

#include "program/target/target.h"
#include "wire/inproc.h"

/* Sets area->watchdog_pid. Call it before there are threads; it copies this process's memory map,
 * so better early. */
struct err *watchdog_start(struct wire_area *area, int *ret_pidfd);
/* Ends it: every process has been detached. Closes pidfd; -1 is fine. */
void watchdog_stop(struct wire_area *area, int pidfd);
/* Where ptrace(2) is for ancestors only (kernel.yama.ptrace_scope 1), lets the watchdog control
 * this stopped process. */
struct err *watchdog_permit(struct control *c, const struct wire_area *area);

#endif
