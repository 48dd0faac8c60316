/* A run that is watched while it goes on: the views of a D program, second by second, as the page
 * of descry serve takes them.
 *
 * In: what a consumer gives its sink (printed text, aggregations as they are now), on the thread
 * that traces. Out: a JSON text for each tick (one line), kept for as long as `history` says, and
 * one that begins: names, stacks, rows known so far.
 * Always true: a tick holds what was counted since the one before, so any range of ticks can be
 * added up; a stack, a name, a row has one number as long as the run lasts; text is valid UTF-8
 * whatever the traced program is called; what is thrown away (stacks, rows, lines beyond a limit)
 * is counted in the tick. All calls may come from any thread.
 */
#ifndef DESCRY_SERVE_LIVE_H
#define DESCRY_SERVE_LIVE_H

#include "base/out.h"
#include "consume/sink.h"

struct live;

struct live_options {
	uint32_t history; /* ticks that are kept; 0: 600 */
	uint32_t ms;      /* of a tick; 0: 1000 */
	bool allow_d;     /* the page may send programs */
	const char *host; /* shown */
	/* Takes lines about drops, which the page adds up; NULL: they are lines of the page. */
	void (*drops)(void *arg, const char *text, size_t n);
	void *arg; /* of drops() */
};
struct live *live_new(const struct live_options *o);
void live_free(struct live *l);

/* A new run: what was known is forgotten, those who listen begin again. */
void live_begin(struct live *l, const char *program);
/* A line of text: what the program printed; message: of descry itself. */
void live_line(struct live *l, const char *text, size_t n, bool message);
/* The run is over. */
void live_end(struct live *l, int status);

/* The sink of a run; freed by it. */
struct sink *live_sink(struct live *l);

/* A reader's place; starts as zeroes. */
struct live_reader {
	uint64_t generation, tick;
};
/* The next text to send: onto `o`. False: nothing new yet. */
bool live_next(struct live *l, struct live_reader *r, struct out *o);
/* Called after each tick, on the thread that made it. */
void live_on_tick(struct live *l, void (*fn)(void *arg), void *arg);

#endif
