/* A merged, sorted snapshot of one aggregation: a view (DESIGN section 3) that renderers print. */
#ifndef DESCRY_DATA_AGGVIEW_H
#define DESCRY_DATA_AGGVIEW_H

#include "data/schema.h"

struct agg_row {
	const uint8_t *key;    /* agg->key_size bytes; NULL when the aggregation has no keys */
	const int64_t *words;  /* agg->nwords merged words (schema.h) */
	const int64_t *percpu; /* ncpus * nwords, NULL unless aggpercpu */
	uint32_t ncpus;
};

struct agg_view {
	const struct agg *agg;
	struct agg_row *rows;
	uint32_t nrows;
	int64_t normal; /* normalize() factor, 1 none */
};

/* The key of a slot (struct agg): key_size bytes. */
const uint8_t *agg_slot_key(const struct agg *a, uint32_t slot);
/* The slot of a key; a->nslots: it has none. */
uint32_t agg_key_slot(const struct agg *a, const void *key);

/* The key as text for sorting and comparing: two keys that print alike (STRIDs of equal text) are
 * equal. */

/* "count", "sum"... as in D. */
const char *agg_func_name(enum agg_func f);

/* The single number an aggregation sorts by and %@d prints (count, sum, avg, min, max, stddev; for
 * distributions the total count weighted as DTrace does). Normalised. */
int64_t agg_row_value(const struct agg_view *v, const struct agg_row *r);

/* llquantize (Bryan Cantrill's log-linear quantisation, both sides of zero): number of bucket
 * words, the one in the middle, the bucket of a value, the least value of a bucket (INT64_MIN for
 * the first), and the number DTrace prints for it: the bound nearest to zero, 0 in the middle. Same
 * arithmetic of magnitudes in bpf/agg.bpf.h:
 *	lower = factor^low; base = 1; if magnitude < lower: rank 0
 *	for each order low..high:  upper = lower * factor; cut = min(upper, steps); skip = cut / factor; step = upper / cut
 *		if magnitude < upper:  rank base + min(magnitude / step - skip, cut - skip - 1)
 *		base += cut - skip; lower = upper
 *	rank base;  bucket: middle plus or minus the rank */
uint32_t agg_ll_nbuckets(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps);
uint32_t agg_ll_middle(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps);
uint32_t agg_ll_bucket(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, int64_t value);
int64_t agg_ll_lower(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, uint32_t bucket);
int64_t agg_ll_label(const struct agg *a, uint32_t bucket);
/* quantize: lower bound printed for bucket 0..126. */
int64_t agg_quantize_value(uint32_t bucket);
uint32_t agg_quantize_bucket(int64_t value);

#endif
