/* The consumer: takes records from an engine, puts them in order, does what their actions say
 * through a sink.
 *
 * In: an engine that is loaded (struct engine), a sink, options. Out: calls of the sink in output
 * order; the exit status. Order of calls: new, begin, then pass() while running; after detach (and
 * END) finish().
 * Always true:
 *	- records of all CPUs and both rings come out in order of time (-x temporal), those of one firing in
 *	  program order; what is younger than a pass is left for the next one;
 *	- aggregation actions of one firing work on one snapshot, so what is counted between printa() and clear() or
 *	  trunc() is not lost;
 *	- nothing is dropped without being counted.
 *
 *	rings -> batch (copied, merged by time) -> speculations -> actions -> sink
 *	                                                            |-> aggs (snapshots of the maps)
 */
#ifndef DESCRY_CONSUME_CONSUME_H
#define DESCRY_CONSUME_CONSUME_H

#include "consume/sink.h"
#include "load/engine.h"

struct consumer;

/* The sink's image, stack, options must not be set yet: the consumer sets image and stack; options,
 * symbols, types and progname are the caller's. Borrows all. */
struct consumer *consumer_new(struct engine *e, struct sink *s, struct options *o);
void consumer_free(struct consumer *c);

struct err *consumer_begin(struct consumer *c);
/* Drains the rings and does what is due. */
struct err *consumer_pass(struct consumer *c);
/* Gives the sink the aggregations as they are now. */
struct err *consumer_show(struct consumer *c);
/* The last pass, after detach and END: everything that is left, then the aggregations that were
 * never printed, drops, the report (`report`: print it), the sink's end. `interrupted`: skip the
 * aggregations (second ^C). */
struct err *consumer_finish(struct consumer *c, bool report, bool interrupted);

/* exit() was seen; the status of the first one. */
bool consumer_exited(const struct consumer *c, int *ret_status);
/* Nanoseconds until the next pass is due, as switchrate and statusrate say. */
uint64_t consumer_interval(const struct consumer *c);
/* What the run cost and lost so far; arrays live as long as the consumer. */
void consumer_report(struct consumer *c, struct run_report *ret);

#endif
