/* The part of an aggregation (struct agg) that compiler, engines and consumer share: slots of its
 * keys, and the bucket of a value. */
#ifndef DESCRY_DATA_AGG_H
#define DESCRY_DATA_AGG_H

#include "data/schema.h"

/* Returns the key of a slot (struct agg): key_size bytes. */
const uint8_t *agg_slot_key(const struct agg *a, uint32_t slot);
/* Returns the slot of a key, or a->nslots when the key has none. */
uint32_t agg_key_slot(const struct agg *a, const void *key);

static inline bool agg_is_distribution(const struct agg *a)
{
	return a->func >= AGG_QUANTIZE;
}

/* Returns the function's name in D: "count", "sum"... */
const char *agg_func_name(enum agg_func f);

/* llquantize (Bryan Cantrill's log-linear quantisation, both sides of zero): number of bucket
 * words, the bucket in the middle, the bucket of a value, the least value of a bucket (INT64_MIN
 * for the first), and the number DTrace prints for it: the bound nearest to zero, 0 in the middle.
 * Same arithmetic of magnitudes in bpf/agg.bpf.h:
 *	lower = factor^low; base = 1; if magnitude < lower: rank 0
 *	for each order low..high:  upper = lower * factor; cut = min(upper, steps); skip = cut / factor; step = upper / cut
 *		if magnitude < upper:  rank base + min(magnitude / step - skip, cut - skip - 1)
 *		base += cut - skip; lower = upper
 *	rank base;  bucket: middle plus or minus the rank
 */
uint32_t agg_ll_nbuckets(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps);
uint32_t agg_ll_middle(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps);
uint32_t agg_ll_bucket(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, int64_t value);
int64_t agg_ll_lower(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, uint32_t bucket);
int64_t agg_ll_label(const struct agg *a, uint32_t bucket);
/* Returns the lower bound that quantize prints for bucket 0..126. */
int64_t agg_quantize_value(uint32_t bucket);
uint32_t agg_quantize_bucket(int64_t value);

#endif
