/* The live page's data, shared by its files: live_page.c keeps ticks, live_rows.c writes the new
 * counts of aggregations, live_sink.c is the sink. */
#ifndef DESCRY_SERVE_LIVE_PRIVATE_H
#define DESCRY_SERVE_LIVE_PRIVATE_H

#include <pthread.h>

#include "base/hash.h"
#include "serve/live_page.h"
#include "view/timeline.h"

enum { LINE_BYTES = 4096 };

struct live_agg {
	char *head; /* JSON: "id":..,"name":..,"func":..,"keys":.. */
	struct timeline rows;
	VEC(char *) texts;                  /* of the rows: {"k":[..],"s":n} */
	VEC(char *) buckets;                /* [index,min,max] of buckets that had counts */
	uint32_t first_bucket, last_bucket; /* all buckets between them are known */
	uint64_t dropped;
};

struct tick {
	char *json;
	size_t n;
};

struct line {
	char *text;
	bool message;
};

struct live {
	struct live_options options;
	pthread_mutex_t lock;
	uint64_t generation;
	char *program;
	int status;
	bool running;

	VEC(char *) frames; /* in the form of frame_id() */
	struct hash frame_ids;
	VEC(char *) stacks; /* JSON arrays of indices of frames, root first */
	struct hash stack_ids;
	uint64_t stacks_dropped;
	uint64_t name_bytes; /* of frames, stacks and the rows of all aggregations, with keys and values */
	VEC(struct live_agg) aggs;

	VEC(struct tick) ticks; /* ring of `history` */
	uint64_t nticks;        /* number of all ticks, and so the next one's number */
	uint64_t first;         /* number of the oldest one that is kept */
	uint64_t tick_bytes;    /* of the kept ones */
	VEC(struct line) lines; /* since the last tick */
	uint64_t lines_dropped;
	uint64_t drops[DROP_KIND_COUNT]; /* since the run began */
	bool drops_new;                  /* since the last tick */
	char part[LINE_BYTES];           /* a line that has not ended */
	uint32_t npart;
	uint64_t next_ns; /* the next tick is due */

	/* The tick being made. */
	struct out views;
	uint32_t frames_from, stacks_from;

	void (*fn)(void *arg);
	void *arg;
};

/* --- live_page.c --- */
/* Writes a JSON string. Characters that cannot be seen, or that would turn the direction of the
 * text around them, become \xNN. */
void live_put_text(struct out *o, const char *s, size_t n);
/* Takes the text of o, which is empty afterwards. The caller frees it. */
char *live_take_text(struct out *o);
/* Writes ,"NAME":[from,[...]]: the new elements of a list. */
void live_put_new(struct out *o, const char *name, char *const *v, uint32_t from, uint32_t n);
/* Adds a line to the next tick. The lock is held, also in the next function. */
void live_add_line(struct live *l, const char *text, size_t n, bool message);
void live_close_tick(struct live *l);
/* Reports to the readers that there is a tick. The lock is not held. */
void live_tell(struct live *l);

/* --- live_rows.c --- */
/* Writes the counts of an aggregation since the last tick, for the tick being made. */
void live_take_rows(struct live *l, struct sink *s, const struct agg_view *v);

#endif
