/* Computes aggregations: slots of keys known at compile time, and the bucket of a value. */
#include "data/agg.h"

#include <string.h>

#include "base/sorted.h"

const uint8_t *agg_slot_key(const struct agg *a, uint32_t slot)
{
	return a->slot_keys + (size_t)slot * a->key_size;
}

uint32_t agg_key_slot(const struct agg *a, const void *key)
{
	uint32_t at = partition_point(
		a->nslots, i, memcmp(agg_slot_key(a, a->slot_order[i]), key, a->key_size) < 0);

	if (at == a->nslots || memcmp(agg_slot_key(a, a->slot_order[at]), key, a->key_size) != 0)
		return a->nslots;
	return a->slot_order[at];
}

uint32_t agg_quantize_bucket(int64_t value)
{
	uint64_t mag = value < 0 ? -(uint64_t)value : (uint64_t)value;
	int log;

	if (!value)
		return 63;
	log = 63 - __builtin_clzll(mag);
	if (value > 0)
		return 64 + (uint32_t)log;
	return log >= 62 ? 0 : 62 - (uint32_t)log; /* INT64_MIN shares the last bucket */
}

int64_t agg_quantize_value(uint32_t bucket)
{
	if (bucket == 63)
		return 0;
	if (bucket > 63)
		return (int64_t)1 << (bucket - 64);
	return -((int64_t)1 << (62 - bucket));
}

/* llquantize: each order of magnitude [factor^m, factor^(m+1)) for m in low..high is cut into equal
 * steps. `steps` cut [0, factor^(m+1)), and the part below factor^m (steps/factor of them) belongs
 * to the order below. Where an order ends below `steps`, a step is one integer. Ranks number the
 * steps: 0 is below factor^low, the last at or above factor^(high+1). Buckets are the ranks of
 * magnitudes, on both sides of the bucket in the middle:
 *
 *	bucket    0             ...  mid - 1           mid                  mid + 1          ...   2 * mid
 *	     <= -factor^(high+1)     rank 1 below 0    abs() < factor^low   rank 1 ...             >= factor^(high+1)
 */
struct order {
	uint64_t lower, upper;   /* saturated at INT64_MAX */
	uint32_t nbuckets, skip; /* skip: steps that belong to the order below */
	uint64_t step;
};

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) || r > INT64_MAX ? INT64_MAX : r;
}

static uint64_t power(uint32_t factor, uint32_t exponent)
{
	uint64_t v = 1;

	while (exponent-- && v < INT64_MAX)
		v = times(v, factor);
	return v;
}

static struct order order_of(uint64_t lower, uint32_t factor, uint32_t steps)
{
	struct order o = { .lower = lower, .upper = times(lower, factor) };
	uint64_t cut = o.upper > steps ? steps : o.upper;

	o.skip = (uint32_t)(cut / factor);
	o.nbuckets = (uint32_t)cut - o.skip;
	o.step = o.upper / cut;
	return o;
}

uint32_t agg_ll_middle(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps)
{
	uint64_t lower = power(factor, low);
	uint32_t n = 1;

	for (uint32_t mag = low; mag <= high; mag++) {
		struct order o = order_of(lower, factor, steps);

		n += o.nbuckets;
		lower = o.upper;
	}
	return n;
}

uint32_t agg_ll_nbuckets(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps)
{
	return 2 * agg_ll_middle(factor, low, high, steps) + 1;
}

static uint32_t rank_of(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps,
			uint64_t magnitude)
{
	uint64_t lower = power(factor, low);
	uint32_t base = 1;

	if (magnitude < lower)
		return 0;
	for (uint32_t mag = low; mag <= high; mag++) {
		struct order o = order_of(lower, factor, steps);

		if (magnitude < o.upper) {
			uint64_t i = magnitude / o.step - o.skip;

			return base + (i < o.nbuckets ? (uint32_t)i : o.nbuckets - 1);
		}
		base += o.nbuckets;
		lower = o.upper;
	}
	return base;
}

/* Returns the least magnitude of a rank from 1 on. */
static int64_t rank_lower(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps,
			  uint32_t rank)
{
	uint64_t lower = power(factor, low);
	uint32_t base = 1;

	for (uint32_t mag = low; mag <= high; mag++) {
		struct order o = order_of(lower, factor, steps);

		if (rank < base + o.nbuckets) {
			uint64_t at = (uint64_t)(rank - base + o.skip) * o.step;

			return (int64_t)(at > lower ? at : lower);
		}
		base += o.nbuckets;
		lower = o.upper;
	}
	return (int64_t)lower;
}

uint32_t agg_ll_bucket(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, int64_t value)
{
	uint32_t middle = agg_ll_middle(factor, low, high, steps);

	if (value < 0)
		return middle - rank_of(factor, low, high, steps, -(uint64_t)value);
	return middle + rank_of(factor, low, high, steps, (uint64_t)value);
}

int64_t agg_ll_lower(uint32_t factor, uint32_t low, uint32_t high, uint32_t steps, uint32_t bucket)
{
	uint32_t middle = agg_ll_middle(factor, low, high, steps);

	if (!bucket)
		return INT64_MIN;
	if (bucket > middle)
		return rank_lower(factor, low, high, steps, bucket - middle);
	return 1 - rank_lower(factor, low, high, steps, middle - bucket + 1);
}

int64_t agg_ll_label(const struct agg *a, uint32_t bucket)
{
	uint32_t middle = agg_ll_middle(a->factor, a->low_mag, a->high_mag, a->steps);

	if (bucket == middle)
		return 0;
	if (bucket > middle)
		return agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, bucket);
	return agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, bucket + 1) - 1;
}

const char *agg_func_name(enum agg_func f)
{
	static const char *const names[] = { "count",  "sum",      "avg",       "min",       "max",
					     "stddev", "quantize", "lquantize", "llquantize" };

	return names[f];
}
