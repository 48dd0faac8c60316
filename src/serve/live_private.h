/* The live page's data, between its files: live.c keeps ticks, live_rows.c writes what aggregations
 * have counted, live_sink.c is the sink. */
#ifndef DESCRY_SERVE_LIVE_PRIVATE_H
#define DESCRY_SERVE_LIVE_PRIVATE_H

#include <pthread.h>

#include "base/hash.h"
#include "serve/live.h"
#include "view/timeline.h"

enum { LINE_BYTES = 4096 };

struct live_agg {
	char *head; /* JSON: "id":..,"name":..,"func":..,"keys":.. */
	struct timeline rows;
	VEC(char *) texts;                  /* of the rows: {"k":[..],"s":n} */
	VEC(char *) buckets;                /* [index,min,max], those seen */
	uint32_t first_bucket, last_bucket; /* all between them are known */
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

	VEC(char *) frames; /* as frame_id() writes them */
	struct hash frame_ids;
	VEC(char *) stacks; /* JSON arrays of indices of frames, root first */
	struct hash stack_ids;
	uint64_t stacks_dropped;
	VEC(struct live_agg) aggs;

	VEC(struct tick) ticks; /* ring of `history` */
	uint64_t nticks;        /* ever; the next one's number */
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

/* --- live.c --- */
/* As a JSON string: what cannot be seen, or would turn the text around it, as \xNN. */
void live_put_text(struct out *o, const char *s, size_t n);
/* The text of o, which is empty then; free() it. */
char *live_take_text(struct out *o);
/* ,"NAME":[from,[...]]: what was added to a list since. */
void live_put_new(struct out *o, const char *name, char *const *v, uint32_t from, uint32_t n);
/* A line of the next tick. The lock is held, also in the next one. */
void live_add_line(struct live *l, const char *text, size_t n, bool message);
void live_close_tick(struct live *l);
/* Tells the readers that there is a tick. The lock is not held. */
void live_tell(struct live *l);

/* --- live_rows.c --- */
/* What came to an aggregation since the last tick, for the tick being made. */
void live_take_rows(struct live *l, struct sink *s, const struct agg_view *v);

#endif
