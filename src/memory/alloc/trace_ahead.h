/* Reads a recording's events by a thread of its own, so that unpacking and decoding go on while the
 * caller works on the events before.
 *
 * In: a trace. Out: its events, in batches. Always true: between alloc_ahead_begin() and
 * alloc_ahead_end() the caller uses nothing of the trace. The thread is started when the recording
 * proves long, and without one the caller's thread reads.
 */
#ifndef DESCRY_MEMORY_ALLOC_TRACE_AHEAD_H
#define DESCRY_MEMORY_ALLOC_TRACE_AHEAD_H

#include "memory/alloc/trace.h"

struct alloc_ahead;
struct alloc_ahead *alloc_ahead_begin(struct alloc_trace *t);
/* Returns the next events, which are valid until the next call. NULL: there are no more. */
const struct alloc_event *alloc_ahead_next(struct alloc_ahead *a, uint32_t *ret_n);
/* Ends the reading, at the end or before. Events that were read but not taken are lost. Returns the
 * error of the reading. */
struct err *alloc_ahead_end(struct alloc_ahead *a);

#endif
