/* Shared by aggs.c and aggs_print.c: the state of each aggregation. */
#ifndef DESCRY_CONSUME_AGGS_H
#define DESCRY_CONSUME_AGGS_H

#include "consume/consume_private.h"

struct entry { /* a key of the map, as the programs wrote it */
	uint8_t *key;
	uint8_t *canonical; /* equal for keys that print alike */
	int64_t *now;       /* [ncpus][nwords] of the last snapshot; NULL: not in it */
	int64_t *base;      /* [ncpus][nwords]; NULL: zeroes */
	bool gone;          /* removed by trunc(): not a row until something is counted again */
};

struct row {
	const uint8_t *key;
	int64_t *words, *percpu;
};

struct state {
	const struct agg *agg;
	uint8_t *traits;   /* of the keys */
	struct hash index; /* key -> index in entries + 1 */
	VEC(struct entry) entries;
	uint32_t ncpus;
	int64_t normal;
	bool printed, has_user_keys, has_user_stacks;

	/* the snapshot */
	bool valid;
	struct firing at;
	struct arena arena;
	struct row *rows;
	uint32_t nrows;
};

/* The place of a name in the process that was seen first. */
struct named_address {
	uint32_t pid;
	uint64_t addr;
};

struct aggs {
	struct engine *engine;
	const struct image *image;
	struct options *options;
	struct symbols *symbols;
	uint32_t *canonical_id; /* of each FIELD_STRID value; NULL until needed */
	struct hash name_index; /* "module`function" to index in named + 1 */
	VEC(struct named_address) named;
	struct state *states;
	bool dtrace; /* keys are ordered as DTrace orders them */
};

/* Takes a snapshot for this firing, unless there is one: all actions of a firing use one snapshot.
 * f NULL: always takes a new snapshot. */
struct err *aggs_snapshot(struct aggs *a, struct state *st, const struct firing *f);
struct agg_order aggs_order(const struct aggs *a, const struct state *st);
void aggs_sort_rows(struct state *st, const struct agg_order *order);

#endif
