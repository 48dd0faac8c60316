/* The fields of an event's text form. In: an ATTACH_TRACEPOINT probe. Out: its arguments. Private
 * to src/probe/.
 */
#ifndef DESCRY_PROBE_FIELDS_H
#define DESCRY_PROBE_FIELDS_H

#include "probe/probe.h"

/* Finds the event's number for perf_event_open(). Returns false when tracefs has no event of that
 * name. */
bool fields_event_number(struct probe_set *ps, const struct probe *p, int32_t *ret);
struct err *fields_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
