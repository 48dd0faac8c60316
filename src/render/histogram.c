/* Draws distributions: quantize, lquantize, llquantize in DTrace's layout, agghist and aggpack
 * rows.
 *
 *	           value  ------------- Distribution ------------- count
 *	            1024 |                                         0
 *	            2048 |@@@@@@@@@@@@@                            3
 */
#include "render/render.h"

enum { BAR = 40 };

static long double magnitude(int64_t v)
{
	return v < 0 ? -(long double)v : (long double)v;
}

void hist_scale_add(struct hist_scale *sc, int64_t value)
{
	/* Zoomed, the highest bar takes 95% of the room. */
	long double m = sc->zoom ? magnitude(value) / 0.95L : magnitude(value);

	if (sc->zoom)
		sc->total = sc->total > m ? sc->total : m;
	else
		sc->total += m;
	sc->positives |= value > 0;
	sc->negatives |= value < 0;
}

void hist_header(struct out *o, int width)
{
	out_printf(o, "\n%*s %41s %-9s\n", width ? width : 16, width ? "key" : "value",
		   "------------- Distribution -------------", "count");
}

/* Positive values grow to the right of the line, negative ones to the left; with both each side has
 * half the room. */
void hist_bar(struct out *o, const struct hist_scale *sc, int64_t value, const struct agg_view *v)
{
	uint32_t room = sc->positives && sc->negatives ? BAR / 2 : BAR;
	uint32_t len = sc->total > 0 ? (uint32_t)(magnitude(value) * room / sc->total + 0.5L) : 0;

	if (len > room)
		len = room;
	if (!sc->negatives) {
		out_char(o, '|');
		out_fill(o, '@', len);
		out_fill(o, ' ', room - len);
	} else if (!sc->positives) {
		out_fill(o, ' ', room - len);
		out_fill(o, '@', len);
		out_char(o, '|');
	} else {
		out_fill(o, ' ', value <= 0 ? room - len : room);
		out_fill(o, '@', value <= 0 ? len : 0);
		out_char(o, '|');
		out_fill(o, '@', value <= 0 ? 0 : len);
		out_fill(o, ' ', value <= 0 ? room : room - len);
	}
	out_char(o, ' ');
	out_signed(o, agg_normalized(v, value), -9);
	out_char(o, '\n');
}

static uint32_t nbuckets(const struct agg *agg)
{
	return agg->nwords - 1;
}

void hist_range(const struct agg *agg, const int64_t *b, uint32_t *ret_first, uint32_t *ret_last)
{
	uint32_t n = nbuckets(agg), first = 0, last = n - 1;

	while (first < n && !b[first])
		first++;
	if (first == n) { /* nothing: cleared, or increments that cancel out */
		switch (agg->func) {
		case AGG_QUANTIZE:
			*ret_first = 62;
			*ret_last = 64;
			return;
		case AGG_LQUANTIZE:
			*ret_first = 0;
			*ret_last = n > 2 ? 2 : n - 1;
			return;
		default:
			*ret_first = n / 2;
			*ret_last = n > 4 ? n / 2 + 2 : n - 1;
			return;
		}
	}
	while (!b[last])
		last--;
	*ret_first = first ? first - 1 : 0;
	*ret_last = last < n - 1 ? last + 1 : last;
}

static int64_t ll_lower(const struct agg *a, uint32_t bucket)
{
	return agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, bucket);
}

void hist_bounds(const struct agg *a, uint32_t i, int64_t *ret_min, int64_t *ret_max)
{
	uint32_t last = nbuckets(a) - 1;

	switch (a->func) {
	case AGG_QUANTIZE:
		/* below zero the printed value is the bound nearest to zero */
		*ret_min = i >= 63 ? agg_quantize_value(i)
			   : i     ? agg_quantize_value(i - 1) + 1
				   : INT64_MIN;
		*ret_max = i == last ? INT64_MAX
			   : i < 63  ? agg_quantize_value(i)
				     : agg_quantize_value(i + 1) - 1;
		return;
	case AGG_LQUANTIZE:
		*ret_min = i ? a->base + (int64_t)(i - 1) * a->step : INT64_MIN;
		*ret_max = i == last ? INT64_MAX : a->base + (int64_t)i * a->step - 1;
		return;
	default:
		*ret_min = ll_lower(a, i);
		*ret_max = i == last ? INT64_MAX : ll_lower(a, i + 1) - 1;
		return;
	}
}

void hist_label(const struct agg *a, uint32_t i, char *buf, size_t n)
{
	uint32_t last = nbuckets(a) - 1;
	int64_t min, max;

	if (a->func == AGG_QUANTIZE) {
		snprintf(buf, n, "%lld", (long long)agg_quantize_value(i));
		return;
	}
	hist_bounds(a, i, &min, &max);
	if (a->func == AGG_LLQUANTIZE) {
		if (i == last / 2 && max > 0)
			snprintf(buf, n, "abs() < %lld", (long long)max + 1);
		else
			snprintf(buf, n, "%s%lld",
				 i == 0      ? "<= "
				 : i == last ? ">= "
					     : "",
				 (long long)agg_ll_label(a, i));
		return;
	}
	if (i == 0)
		snprintf(buf, n, "< %lld", (long long)max + 1);
	else if (i == last)
		snprintf(buf, n, ">= %lld", (long long)min);
	else
		snprintf(buf, n, "%lld", (long long)min);
}

void hist_print(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words)
{
	const int64_t *b = words + 1;
	struct hist_scale sc = { .zoom = s->options && opt_on(s->options, OPT_AGGZOOM) };
	uint32_t first, last;
	char buf[32];

	hist_range(v->agg, b, &first, &last);
	for (uint32_t i = first; i <= last; i++)
		hist_scale_add(&sc, b[i]);
	hist_header(o, 0);
	for (uint32_t i = first; i <= last; i++) {
		hist_label(v->agg, i, buf, sizeof(buf));
		out_padded(o, buf, strlen(buf), 16);
		out_char(o, ' ');
		hist_bar(o, &sc, b[i], v);
	}
}

/* --- aggpack --- */

static int ndigits(int64_t v)
{
	char buf[32];
	int n = snprintf(buf, sizeof(buf), "%lld", (long long)v);

	return n < 4 ? 4 : n;
}

struct pack_ends {
	char min[32], max[32];
	int min_width, max_width;
};

static struct pack_ends pack_ends(const struct agg *a, uint32_t first, uint32_t last)
{
	struct pack_ends e;

	hist_label(a, first, e.min, sizeof(e.min));
	hist_label(a, last, e.max, sizeof(e.max));
	if (a->func == AGG_QUANTIZE) {
		e.min_width = ndigits(agg_quantize_value(first));
		e.max_width = ndigits(agg_quantize_value(last));
	} else {
		e.min_width = 7;
		e.max_width = 8;
	}
	return e;
}

void hist_pack_header(struct out *o, const struct agg_view *v, int keys_width, uint32_t first,
		      uint32_t last)
{
	struct pack_ends e = pack_ends(v->agg, first, last);

	out_printf(o, "\n%*s %*s .", keys_width, keys_width ? "key" : "", e.min_width, "min");
	out_fill(o, '-', last - first + 1);
	out_printf(o, ". %*s | count\n", -e.max_width, "max");
}

static bool utf8_terminal(void)
{
	const char *term = getenv("TERM");

	return !(term &&
		 (!strcmp(term, "sun") || !strcmp(term, "sun-color") || !strcmp(term, "dumb")));
}

void hist_pack(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words,
	       uint32_t first, uint32_t last)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	struct pack_ends e = pack_ends(v->agg, first, last);
	struct hist_scale sc = { .zoom = s->options && opt_on(s->options, OPT_AGGZOOM) };
	bool utf8 = utf8_terminal();
	const int64_t *b = words + 1;
	uint64_t count = 0;

	for (uint32_t i = first; i <= last; i++) {
		hist_scale_add(&sc, b[i]);
		count += (uint64_t)b[i];
	}
	out_char(o, ' ');
	out_padded(o, e.min, strlen(e.min), e.min_width);
	out_str(o, " :");
	for (uint32_t i = first; i <= last; i++) {
		long double part = sc.total > 0 ? magnitude(b[i]) / sc.total : 0;

		if (!b[i])
			out_char(o, ' ');
		else if (b[i] < 0)
			out_char(o, "vvvvVV"[(uint32_t)(part * 5 + 0.5L)]);
		else if (utf8)
			out_str(o, blocks[(uint32_t)(part * 7 + 0.5L)]);
		else
			out_char(o, "__xxxxXX"[(uint32_t)(part * 7 + 0.5L)]);
	}
	out_str(o, ": ");
	out_padded(o, e.max, strlen(e.max), -e.max_width);
	out_printf(o, " | %lld\n", (long long)agg_normalized(v, (int64_t)count));
}
