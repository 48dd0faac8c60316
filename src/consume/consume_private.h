/* Shared inside consume/: the consumer's state and its parts. */
#ifndef DESCRY_CONSUME_CONSUME_PRIVATE_H
#define DESCRY_CONSUME_CONSUME_PRIVATE_H

#include "consume/consume.h"
#include "data/record.h"

/* --- batch.c: records taken from the rings, in order --- */
struct item {
	uint64_t time;
	uint32_t offset; /* in bytes[], in units of 8 bytes */
	uint32_t size;
};
typedef VEC(struct item) item_vec;

struct batch {
	uint8_t *bytes;
	size_t n, cap;
	item_vec ring[2]; /* data, control: as drained, then sorted by time */
	bool sorted[2];
	uint32_t at[2];             /* how many of each ring are done */
	VEC(struct wire_late) late; /* arrived and not used yet */
	VEC(uint64_t)
	late_seen;                  /* for each: `now` of the first batch_compact() with it, or 0 */
	struct hash late_by_number; /* number -> index of the newest in late[] + 1 */
	uint32_t *late_next;        /* index + 1 of the previous string with the same number */
	uint32_t late_next_cap;
};
void batch_fini(struct batch *b);
/* Copies a record. False: the record is a late string beyond the limit, and is left out. */
bool batch_add(struct batch *b, const struct wire_record *r, uint32_t size, bool control);
void batch_sort(struct batch *b);
/* Returns the next record in order, NULL when there is none. */
struct wire_record *batch_peek(struct batch *b, const struct image *img, uint32_t *ret_size,
			       int *ret_ring);
void batch_take(struct batch *b, int ring);
/* Returns the bytes of the records that were not taken. */
uint64_t batch_held(const struct batch *b);
/* Moves the remaining records to the front. */
void batch_compact(struct batch *b, uint64_t now);
/* Copies the late strings of r into r. Returns false when none has come yet, or the newest came
 * after `before`. */
bool batch_late(struct batch *b, const struct segment *seg, struct wire_record *r, uint64_t before);

/* The words of -x bufpolicy. */
enum { POLICY_SWITCH, POLICY_FILL, POLICY_RING };

/* --- spec.c: records of speculations, until commit() or discard() --- */
struct speculation {
	uint8_t *bytes; /* uint32_t size, then the record, 8-aligned; repeated */
	size_t n, cap;
};
bool spec_add(struct consumer *c, const struct wire_record *r, uint32_t size);
struct err *spec_end(struct consumer *c, uint64_t id, bool commit);
void spec_fini(struct consumer *c);

/* --- aggs.c --- */
struct firing {
	uint64_t time;
	uint32_t cpu, probe;
};
struct aggs;
struct aggs *aggs_new(struct engine *e, const struct image *img, struct options *o,
		      const struct sink *s);
void aggs_free(struct aggs *a);
struct err *aggs_printa(struct aggs *a, struct sink *s, const struct record_view *r,
			const struct action *act);
struct err *aggs_clear(struct aggs *a, const struct firing *f, uint32_t agg);
/* remaining: how many of the largest rows stay (negative: of the smallest); 0: none. */
struct err *aggs_trunc(struct aggs *a, const struct firing *f, uint32_t agg, int64_t remaining);
void aggs_normalize(struct aggs *a, uint32_t agg, int64_t factor);
/* Reads the mappings of the processes that the engine has met. Returns false when the engine cannot
 * list them, or when later mappings would stay unknown. */
bool aggs_meet(struct aggs *a);
/* Reads the mappings of the processes in the keys, so that their addresses have names after the
 * processes end. met: leaves out aggregations whose keys only have stacks. */
struct err *aggs_remember(struct aggs *a, bool met);
/* Gives the sink all present aggregations; does not count them as printed. */
struct err *aggs_show(struct aggs *a, struct sink *s);
/* Gives the sink the aggregations that were never printed. */
struct err *aggs_final(struct aggs *a, struct sink *s);

/* --- order.c: comparing rows --- */
struct agg_order {
	const struct agg *agg;
	const struct image *image;
	const uint8_t *traits;             /* of the keys */
	bool by_key, reverse, is_unsigned; /* is_unsigned: DTrace compares so */
	uint32_t key_pos;
};
int order_keys(const struct agg_order *o, const uint8_t *a, const uint8_t *b);
int order_values(const struct agg *agg, const int64_t *a, const int64_t *b);

/* --- drops.c --- */
struct drops {
	uint32_t ncpus;
	uint64_t *last; /* [ncpus][WIRE_FIXED_COUNTERS] */
	uint64_t missed, lost_ticks, lost_events, unnamed, changed; /* reported so far */
	uint64_t total[DROP_KIND_COUNT];
	uint64_t faults;
};
struct err *drops_poll(struct consumer *c);
void drops_fini(struct drops *d);

struct consumer {
	struct engine *engine;
	struct sink *sink;
	struct options *options;
	const struct image *image;
	struct batch batch;
	struct aggs *aggs;
	struct speculation specs[64];
	struct drops drops;
	uint8_t **traits; /* per segment: of its fields, NULL not looked up */
	bool *opens_line; /* per segment */
	uint64_t start, start_cpu;
	uint64_t next_status, next_aggs;
	uint64_t records, bytes;
	uint64_t held;         /* bufpolicy fill, ring: bytes of data records kept until the end */
	uint64_t held_control; /* the same for control records */
	uint64_t held_max;     /* bytes of waiting records above which no record waits */
	bool full;             /* bufpolicy fill: the buffer is full */
	bool finishing;
	uint64_t taken_at; /* CLOCK_MONOTONIC ns: when the rings were drained last */
	uint64_t spec_drops, late_drops, bad_records;
	uint64_t spec_drops_said, late_drops_said, bad_records_said;
	bool exited, dtrace; /* dtrace: run under the name dtrace */
	int exit_status;
	struct report_probe *report_probes;
	struct report_prog *report_progs;
	struct engine_prog_report *engine_progs;
};

uint64_t cpu_now(void); /* user + system time of this process, ns */
/* Runs the actions of a complete record. */
struct err *record_run(struct consumer *c, const struct wire_record *r, uint32_t size, bool more);

#endif
