/* The chunks of a recording's threads (ALLOC_CHUNK), merged to one sequence by their ticks.
 *
 * In: chunks in the order of the file. Out: events. Always true: the bytes are untrusted. No more
 * than MERGE_BYTES_MAX of them are held.
 */
#ifndef DESCRY_MEMORY_ALLOC_TRACE_MERGE_H
#define DESCRY_MEMORY_ALLOC_TRACE_MERGE_H

#include "memory/alloc/trace.h"

struct merge;

struct merge_clock {
	uint64_t ticks;  /* of the processor's counter at time 0 */
	uint64_t factor; /* nanoseconds of one of them, as a fraction of 2^64 */
	uint32_t tick;   /* an event's tick is 1 << tick of them */
};
enum { MERGE_TICK_MAX = 31 };

/* Threads are added to the trace. disorder: the ticks of events that depend on each other may be
 * out of order, if they are of different threads. */
struct merge *merge_new(struct alloc_trace *t, const struct merge_clock *clock, bool disorder);
void merge_free(struct merge *m);
/* Adds a chunk. Returns the reason when it is wrong, else NULL. */
const char *merge_add(struct merge *m, const struct alloc_chunk *c);
/* Takes the next event up to these ticks. Its stack may be of any number. Returns false when
 * there is no event up to then. Returns false and sets *ret_wrong when the bytes are wrong. */
bool merge_next(struct merge *m, uint64_t until, struct alloc_event *ret, const char **ret_wrong);

#endif
