/* Computes the number by which a row is sorted and that %@d prints. */
#include "view/rows.h"

static uint64_t isqrt(unsigned __int128 v)
{
	unsigned __int128 r = 0, bit = (unsigned __int128)1 << 126;

	while (bit > v)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (v >= r + bit) {
			v -= r + bit;
			r = (r >> 1) + bit;
		} else {
			r >>= 1;
		}
	}
	return (uint64_t)r;
}

/* The processor raises a signal for a quotient that does not fit. Here it wraps. */
static int64_t divided(int64_t v, int64_t by)
{
	return by == -1 ? (int64_t)(0 - (uint64_t)v) : v / by;
}

int64_t agg_normalized(const struct agg_view *v, int64_t value)
{
	return divided(value, v->normal ? v->normal : 1);
}

/* Returns sqrt(avg(x^2) - avg(x)^2), in integers as DTrace computes it. Divides the squares twice
 * when x is normalised. */
static int64_t stddev(const int64_t *w, int64_t normal)
{
	unsigned __int128 squares = (unsigned __int128)(uint64_t)w[3] << 64 | (uint64_t)w[2];
	uint64_t div = normal < 0 ? 0 - (uint64_t)normal : (uint64_t)normal;
	int64_t avg;
	unsigned __int128 square;

	if (w[0] <= 0)
		return 0;
	squares = squares / div / div / (uint64_t)w[0];
	avg = divided(w[1], normal) / w[0];
	square = (unsigned __int128)((__int128)avg * avg);
	return squares > square ? (int64_t)isqrt(squares - square) : 0;
}

static int64_t clamp(long double v)
{
	if (v >= (long double)INT64_MAX)
		return INT64_MAX;
	if (v <= (long double)INT64_MIN)
		return INT64_MIN;
	return (int64_t)v;
}

/* Returns the value that DTrace gives a bucket when it weighs a distribution. */
static int64_t bucket_weight(const struct agg *agg, uint32_t i)
{
	uint32_t last = agg->nwords - 2;

	switch (agg->func) {
	case AGG_QUANTIZE: return agg_quantize_value(i);
	case AGG_LQUANTIZE:
		if (i == 0)
			return agg->base - 1;
		if (i == last)
			return agg->base + (int64_t)(last - 1) * agg->step + 1;
		return agg->base + (int64_t)(i - 1) * agg->step;
	default: return agg_ll_label(agg, i);
	}
}

int64_t agg_row_value(const struct agg_view *v, const struct agg_row *r)
{
	const struct agg *agg = v->agg;
	int64_t normal = v->normal ? v->normal : 1;
	const int64_t *w = r->words;
	long double total = 0;

	switch (agg->func) {
	case AGG_COUNT: return agg_normalized(v, w[0]);
	case AGG_SUM:
	case AGG_MIN:
	case AGG_MAX: return agg_normalized(v, w[1]);
	case AGG_AVG: return w[0] > 0 ? agg_normalized(v, w[1]) / w[0] : 0;
	case AGG_STDDEV: return stddev(w, normal);
	default:
		for (uint32_t i = 0; i + 1 < agg->nwords; i++)
			if (w[i + 1])
				total += (long double)w[i + 1] * (long double)bucket_weight(agg, i);
		return clamp(total / (long double)normal);
	}
}
