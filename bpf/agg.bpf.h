/* SPDX-License-Identifier: GPL-2.0-only */
/* Arithmetic of the aggregating functions; src/data/agg.c does the same on the host. */

/* floor(log2(v)) + 1, 0 for 0. Has no branches, because the verifier would follow each combination
 * of them to the end of the program. */
INLINE u64 bit_length(u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	v -= (v >> 1) & 0x5555555555555555ull;
	v = (v & 0x3333333333333333ull) + ((v >> 2) & 0x3333333333333333ull);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (v * 0x0101010101010101ull) >> 56;
}

/* The bucket of a value. 63 is 0; 64 + k: [2^k, 2^(k+1)); 62 - k: (-2^(k+1), -2^k]. -2^63 has no
 * bucket of its own and gets bucket 0. */
ROUTINE u64 d_quantize_bucket(s64 value)
{
	u64 sign = (u64)(value >> 63); /* 0 or ~0 */
	u64 len = bit_length(((u64)value ^ sign) - sign);
	u64 b = 63 + ((len ^ sign) - sign);

	/* len is 64 for -2^63 only: 63 - 64 is -1. */
	b += b >> 63;
	b = b >> 63 ? 0 : b;
	OPAQUE(b);
	if (b > 126)
		return 126;
	return b;
}

struct ll_loop {
	u64 value, lower, base;
	u64 factor, steps;
};

enum { ORDERS_MAX = 64 };
#define INT64_LAST 0x7fffffffffffffffull

/* a * b, at most INT64_LAST. */
INLINE u64 times(u64 a, u64 b)
{
	return b && a > INT64_LAST / b ? INT64_LAST : a * b;
}

CALLBACK ll_power(u32 i, struct ll_loop *l)
{
	l->lower = times(l->lower, l->factor);
	return 0;
}

/* Looks at one order of magnitude: returns 1 with the value's bucket when the value lies in it,
 * else goes on to the next order. */
CALLBACK ll_order(u32 i, struct ll_loop *l)
{
	u64 upper = times(l->lower, l->factor), cut = upper > l->steps ? l->steps : upper;
	u64 skip = l->factor ? cut / l->factor : 0, buckets = cut - skip;
	u64 step = cut ? upper / cut : 1;

	if (l->value < upper) {
		u64 at = (step ? l->value / step : 0) - skip;

		l->base += at < buckets ? at : buckets - 1;
		return 1;
	}
	l->base += buckets;
	l->lower = upper;
	return 0;
}

/* The log-linear rank of a magnitude. Rank 0 is below factor^low. Each order of magnitude up to
 * `high` has `steps` linear buckets (fewer where it has fewer integers). The last rank is at or
 * above factor^(high + 1). */
ROUTINE u64 d_llquantize_rank(u64 magnitude, u64 factor, u64 low, u64 high, u64 steps)
{
	struct ll_loop l = { .value = magnitude,
			     .lower = hidden(1),
			     .base = hidden(1),
			     .factor = factor,
			     .steps = steps };
	u32 orders = (u32)(high - low + 1);

	if (low > ORDERS_MAX || orders > ORDERS_MAX)
		return 0;
	bpf_loop((u32)low, ll_power, &l, 0);
	if (magnitude < l.lower)
		return 0;
	bpf_loop(orders, ll_order, &l, 0);
	return l.base;
}

/* The agent has native code for these (agent/key.c); here, no text is known. */
ROUTINE long d_agg_text(void *map, u64 addr, u64 entry)
{
	RESULT(0);
}

ROUTINE long d_agg_python(void *map, u64 frame, u64 path, u64 entry)
{
	RESULT(0);
}

ROUTINE long d_agg_ruby(void *map, u64 frame, u64 method, u64 entry)
{
	RESULT(0);
}

/* words: n, sum, low and high half of the sum of squares. */
ROUTINE long d_stddev_add(u64 *words, s64 value)
{
	u64 sign = (u64)(value >> 63), v = ((u64)value ^ sign) - sign;
	u64 lo = v & 0xffffffff, hi = v >> 32;
	u64 cross = lo * hi; /* twice this, shifted by 32 */
	u64 low = lo * lo, high = hi * hi + (cross >> 31);
	u64 part = cross << 33;

	low += part;
	/* a < b as arithmetic: the carry of a = x + y, where b = x */
	high += low < part;
	words[0]++;
	words[1] += (u64)value;
	words[2] += low;
	words[3] += high + (words[2] < low);
	return 0;
}
