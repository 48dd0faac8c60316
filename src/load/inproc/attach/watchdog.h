/* A small process that waits for the tracer's end, and then removes the tracer's patches and
 * mappings from every traced process.
 *
 * In: the area, in the watchdog's own mapping. Out: a process named descry-watch, in a session of
 * its own. It ignores the signals that end a session, and has no descriptor but a pidfd of the
 * tracer. Always true: it prints nothing, changes nothing while the tracer lives, and ends after
 * the tracer has ended.
 */
#ifndef DESCRY_LOAD_INPROC_WATCHDOG_H
#define DESCRY_LOAD_INPROC_WATCHDOG_H

#include "program/target/target.h"
#include "wire/inproc.h"

/* Sets area->watchdog_pid. Call it before there are threads, and early, because it copies this
 * process's memory map. */
struct err *watchdog_start(struct wire_area *area, int *ret_pidfd);
/* Ends the watchdog. Every process must be detached. Closes pidfd; -1 is fine. */
void watchdog_stop(struct wire_area *area, int pidfd);
/* Permits the watchdog to control this stopped process where ptrace(2) is for ancestors only
 * (kernel.yama.ptrace_scope 1). */
struct err *watchdog_permit(struct control *c, const struct wire_area *area);

#endif
