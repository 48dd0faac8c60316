/* The consumer: takes records from an engine, orders them, and runs their actions on a sink.
 *
 * In: a loaded engine (struct engine), a sink, options. Out: calls of the sink in output order; the
 * exit status. Order of calls: new, begin, then pass() while running; after detach (and END)
 * finish().
 * Always true:
 *	- records of all CPUs and both rings come out in order of time (-x temporal), records of one firing in
 *    program order; a pass leaves records younger than itself to the next pass;
 *	- aggregation actions of one firing work on one snapshot, so that counts made between printa() and clear()
 *    or trunc() are not lost;
 *	- every dropped record is counted.
 *
 *	rings -> batch (copied, merged by time) -> speculations -> actions -> sink
 *	                                                            |-> aggs (snapshots of the maps)
 */
#ifndef DESCRY_CONSUME_CONSUME_H
#define DESCRY_CONSUME_CONSUME_H

#include "consume/sink.h"
#include "load/engine.h"

struct consumer;

/* Makes a consumer. Borrows all arguments. Sets the sink's image and stack; the caller sets its
 * options, symbols, types and progname. */
struct consumer *consumer_new(struct engine *e, struct sink *s, struct options *o);
void consumer_free(struct consumer *c);

struct err *consumer_begin(struct consumer *c);
/* Drains the rings and runs the records whose time has come. */
struct err *consumer_pass(struct consumer *c);
/* The same in parts, for several consumers whose records come out in one order: take, then run as
 * often as next finds a record that is older than take's result, then end. */
/* Drains the rings. Returns the time before which records may run now. */
uint64_t consumer_take(struct consumer *c);
/* Returns the time of the oldest record that may run; UINT64_MAX: there is none. */
uint64_t consumer_next(struct consumer *c);
/* Runs the records older than `before`. */
struct err *consumer_run(struct consumer *c, uint64_t before);
/* Ends the pass: drops, aggregations, the sink's flush. */
struct err *consumer_end_pass(struct consumer *c);
/* Gives the sink the present aggregations. */
struct err *consumer_show(struct consumer *c);
/* Runs the last pass, after detach and END: the remaining records, the aggregations that were never
 * printed, drops, the report (if `report`), the sink's end. `interrupted` (second ^C): skips the
 * aggregations. */
struct err *consumer_finish(struct consumer *c, bool report, bool interrupted);

/* Returns true when exit() has run. *ret_status is the status of the last exit(). */
bool consumer_exited(const struct consumer *c, int *ret_status);
/* Returns the nanoseconds until the next pass is due, from switchrate and statusrate. */
uint64_t consumer_interval(const struct consumer *c);
/* Fills in the costs and losses so far. Its arrays live as long as the consumer. */
void consumer_report(struct consumer *c, struct run_report *ret);

#endif
