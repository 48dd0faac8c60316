/* A run that is watched while it goes on: the views of a D program, second by second, for the page
 * of descry serve.
 *
 * In: the calls of a consumer to its sink (printed text, present aggregations), on the thread that
 * traces. Out: a JSON text for each tick (one line), kept for `history` ticks, and a text that
 * begins a stream: the names, stacks and rows known so far. Texts of type "names" that follow it
 * have those that do not fit. Always true: a tick has the counts since the tick before, so any
 * range of ticks can be added up. A stack, a name and a row keep their number for the whole run.
 * Text is valid UTF-8, whatever the name of the traced program. Data that is dropped (stacks, rows,
 * lines beyond a limit) is counted in the tick. All calls may come from any thread.
 */
#ifndef DESCRY_SERVE_LIVE_PAGE_H
#define DESCRY_SERVE_LIVE_PAGE_H

#include "base/out.h"
#include "consume/sink.h"

struct live;

struct live_options {
	uint32_t history; /* number of kept ticks; 0: 600 */
	uint64_t bytes;   /* of kept ticks; 0: 256 MB */
	uint64_t names;   /* bytes of all names, stacks and rows of a run; 0: 256 MB */
	uint32_t ms;      /* length of a tick in ms; 0: 1000 */
	bool allow_d;     /* the page may send programs */
	bool allow_heap;  /* the page may ask for the heap */
	const char *host; /* shown */
	/* Takes lines about drops, which the page adds up; NULL: they are lines of the page. */
	void (*drops)(void *arg, const char *text, size_t n);
	void *arg; /* of drops() */
};
struct live *live_new(const struct live_options *o);
void live_free(struct live *l);

/* Begins a new run: drops all data, and lets all readers begin again. */
void live_begin(struct live *l, const char *program);
/* Adds a line of text that the program printed; message: a line of descry itself. */
void live_line(struct live *l, const char *text, size_t n, bool message);
/* Notes that the run is over. */
void live_end(struct live *l, int status);

/* Returns the sink of a run, which frees it. */
struct sink *live_sink(struct live *l);

enum { LIVE_PIECE = 1 << 20 /* bytes of names in one text */ };
/* A reader's position; starts as zeroes. */
struct live_reader {
	uint64_t generation, tick;
	/* The names, stacks, rows and buckets it has been told so far, in pieces, while `names`. */
	bool names;
	uint32_t frames, stacks, agg, rows, buckets;
};
/* Appends the next text to send to `o`. Returns false when there is nothing new. */
bool live_next(struct live *l, struct live_reader *r, struct out *o);
/* Called after each tick, on the thread that made it. */
void live_on_tick(struct live *l, void (*fn)(void *arg), void *arg);

#endif
