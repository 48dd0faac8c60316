/* Shared by the outputs of a heat map: colours and labels. */
#include "render/picture_heat.h"

#include <math.h>

#include "base/sorted.h"
#include "render/picture_flame.h"

static const char *const scale_names[HEAT_NSCALES] = { "rank", "linear", "log" };

const char *heat_scale_name(enum heat_scale s)
{
	return scale_names[s];
}

enum heat_scale heat_scale_named(const char *name)
{
	int s = 0;

	while (s < HEAT_NSCALES && strcmp(scale_names[s], name))
		s++;
	return (enum heat_scale)s;
}

static int compare_counts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return COMPARE(x, y);
}

/* Returns the number of counts that are not above v. */
static uint32_t not_above(const uint64_t *sorted, uint32_t n, uint64_t v)
{
	return partition_point(n, i, sorted[i] <= v);
}

uint8_t *heat_levels(const struct matrix_view *v, enum heat_scale scale)
{
	uint32_t n = v->cells.n;
	uint8_t *levels = xcalloc(n + 1, 1);
	cleanup_free uint64_t *sorted = xcalloc(n + 1, sizeof(*sorted));

	for (uint32_t i = 0; i < n; i++)
		sorted[i] = v->cells.v[i].count;
	if (scale == HEAT_RANK)
		qsort(sorted, n, sizeof(*sorted), compare_counts);
	for (uint32_t i = 0; i < n; i++) {
		double c = (double)v->cells.v[i].count, part, level;

		switch (scale) {
		case HEAT_RANK: part = (double)not_above(sorted, n, v->cells.v[i].count) / n; break;
		case HEAT_LOG: part = log(c + 1) / log((double)v->max + 1); break;
		default: part = c / (double)v->max;
		}
		level = floor(part * 255 + 0.5);
		levels[i] = level < 1 ? 1 : level > 255 ? 255 : (uint8_t)level;
	}
	return levels;
}

/* From few to many, each colour darker than the one before, so that depth is visible without hue.
 * The hues are Okabe and Ito's, which colour-blind people can distinguish. */
enum { STOPS = 4 };
static const uint32_t one_series[STOPS] = { 0xfdeeb8, 0xf9a84a, 0xd5441f, 0x6a0f1c };
static const uint32_t ramps[HEAT_HUES + 1][STOPS] = {
	{ 0xcfe4f3, 0x6fb0dc, 0x0072b2, 0x06304f }, /* blue */
	{ 0xfbdcc4, 0xef9a5b, 0xd55e00, 0x6b2b00 }, /* vermilion */
	{ 0xc6ebdd, 0x5cc4a0, 0x009e73, 0x004532 }, /* green */
	{ 0xf3d9e8, 0xdc9fc3, 0xb8558f, 0x552243 }, /* purple */
	{ 0xfbf0b4, 0xeed34f, 0xb89b00, 0x514400 }, /* yellow */
	{ 0xd4f1f6, 0x84d3e2, 0x2b9fb5, 0x0d4650 }, /* cyan */
	{ 0xe4e4e4, 0xb0b0b0, 0x757575, 0x2d2d2d }, /* all others */
};

uint32_t heat_color(uint32_t series, uint32_t nseries, uint32_t level)
{
	const uint32_t *ramp = nseries <= 1 ? one_series
					    : ramps[series < HEAT_HUES ? series : HEAT_HUES];
	uint32_t at = level * (STOPS - 1), i = at / 255, f = at % 255, c = 0;

	if (i >= STOPS - 1)
		return ramp[STOPS - 1];
	for (int shift = 16; shift >= 0; shift -= 8) {
		uint32_t a = ramp[i] >> shift & 255, b = ramp[i + 1] >> shift & 255;

		c |= (a * (255 - f) + b * f + 127) / 255 << shift;
	}
	return c;
}

struct unit_part {
	const char *unit, *text;
	int64_t factor;
};

/* The parts of each unit, from the smallest on; the text "" stands for any other unit. */
static const struct unit_part unit_parts[] = {
	{ "ns", "ns", 1 },
	{ "ns", "us", 1000 },
	{ "ns", "ms", 1000000 },
	{ "ns", "s", 1000000000 },
	{ "us", "us", 1 },
	{ "us", "ms", 1000 },
	{ "us", "s", 1000000 },
	{ "ms", "ms", 1 },
	{ "ms", "s", 1000 },
	{ "s", "s", 1 },
	{ "bytes", "B", 1 },
	{ "bytes", "KB", 1 << 10 },
	{ "bytes", "MB", 1 << 20 },
	{ "bytes", "GB", 1 << 30 },
	{ "bytes", "TB", (int64_t)1 << 40 },
	{ "%", "%", 1 },
	{ "", "", 1 },
	{ "", "k", 1000 },
	{ "", "M", 1000000 },
	{ "", "G", 1000000000 },
	{ "", "T", 1000000000000 },
};

static bool is_unit(const struct unit_part *p, const char *unit)
{
	return !strcmp(p->unit, unit);
}

/* Writes a value in the largest part that fits into it once, rounded to three decimals. */
void heat_value(struct out *o, int64_t v, const char *unit)
{
	uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v, f;
	const struct unit_part *best = NULL;
	unsigned __int128 thousandths;
	bool known = false;

	unit = unit ? unit : "";
	for (size_t i = 0; i < ARRAY_SIZE(unit_parts); i++)
		known |= is_unit(&unit_parts[i], unit);
	for (size_t i = 0; i < ARRAY_SIZE(unit_parts); i++)
		if (is_unit(&unit_parts[i], known ? unit : "") &&
		    (!best || m >= (uint64_t)unit_parts[i].factor))
			best = &unit_parts[i];
	f = (uint64_t)best->factor;
	thousandths = ((unsigned __int128)m * 1000 + f / 2) / f;
	if (v < 0)
		out_char(o, '-');
	out_unsigned(o, (uint64_t)(thousandths / 1000), 0);
	if (thousandths % 1000) {
		char digits[8];
		int n = snprintf(digits, sizeof(digits), ".%03u", (unsigned)(thousandths % 1000));

		while (digits[n - 1] == '0')
			n--;
		out_mem(o, digits, (size_t)n);
	}
	out_str(o, best->text);
	if (!known) {
		out_char(o, ' ');
		flame_shown(o, unit, strlen(unit));
	}
}

void heat_range(struct out *o, const struct matrix_row *r, const char *unit)
{
	if (r->min == INT64_MIN && r->max == INT64_MAX) {
		out_str(o, "all");
	} else if (r->min == INT64_MIN) {
		out_str(o, "below ");
		heat_value(o, r->max + 1, unit);
	} else if (r->max == INT64_MAX) {
		heat_value(o, r->min, unit);
		out_str(o, " and more");
	} else {
		heat_value(o, r->min, unit);
		if (r->max > r->min) {
			out_str(o, " to ");
			heat_value(o, r->max + 1, unit);
		}
	}
}

bool heat_is_wall(const struct matrix_view *v)
{
	return v->first >= 100000000000000000u / v->step;
}

static void put_fraction(struct out *o, uint64_t ns)
{
	char digits[16];
	int n = snprintf(digits, sizeof(digits), ".%09u", (unsigned)ns);

	if (!ns)
		return;
	while (digits[n - 1] == '0')
		n--;
	out_mem(o, digits, (size_t)n);
}

void heat_time(struct out *o, const struct matrix_view *v, uint32_t column)
{
	uint64_t ns = (heat_is_wall(v) ? v->first + column : column) * v->step, s = ns / 1000000000;

	if (heat_is_wall(v)) {
		out_printf(o, "%02u:%02u:%02u", (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60),
			   (unsigned)(s % 60));
		put_fraction(o, ns % 1000000000);
		return;
	}
	out_unsigned(o, s, 0);
	put_fraction(o, ns % 1000000000);
	out_char(o, 's');
}

uint32_t heat_every(double cell, double label)
{
	static const uint32_t every[] = { 1,   2,   5,    10,   20,   30,   60,    120,
					  300, 600, 1200, 1800, 3600, 7200, 18000, 36000 };
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(every) && every[i] * cell < label)
		i++;
	return every[i];
}

int heat_roundness(int64_t value)
{
	uint64_t v = value < 0 ? -(uint64_t)value : (uint64_t)value;
	int bits = 0;

	if (!v)
		return 60;
	while (v % 10 == 0)
		v /= 10;
	if (v == 1)
		return 50;
	v = value < 0 ? -(uint64_t)value : (uint64_t)value;
	if ((v & (v - 1)) == 0) {
		bits = __builtin_ctzll(v);
		return bits % 10 == 0 ? 50 : bits % 5 == 0 ? 30 : bits % 2 == 0 ? 20 : 10;
	}
	while (v % 10 == 0)
		v /= 10;
	return v == 5 ? 30 : v == 2 ? 25 : v < 10 ? 15 : v < 100 ? 8 : 5;
}

/* Returns the width of all rows that have two ends, 0: it differs. */
static uint64_t row_width(const struct matrix_view *v)
{
	uint64_t width = 0;

	for (uint32_t i = 0; i < v->rows.n; i++) {
		struct matrix_row r = v->rows.v[i];
		uint64_t w = (uint64_t)r.max - (uint64_t)r.min + 1;

		if (r.min == INT64_MIN || r.max == INT64_MAX)
			continue;
		if (width && w != width)
			return 0;
		width = w;
	}
	return width ? width : 1;
}

/* Returns n when every n-th of rows that are `width` wide has a label, so that labels are 1, 2 or 5
 * apart where possible. */
static uint32_t label_every(uint64_t width, double row_height, double label_height)
{
	uint32_t least = heat_every(row_height, label_height);

	for (uint32_t k = least; k <= 4 * least; k++)
		if (heat_roundness((int64_t)(width * k)) >= 25)
			return k;
	return least;
}

bool *heat_row_labels(const struct matrix_view *v, double row_height, double label_height)
{
	uint32_t n = v->rows.n, apart = (uint32_t)ceil(label_height / row_height);
	bool *labels = xcalloc(n + 1, sizeof(*labels));

	if (row_width(v)) {
		uint32_t every = label_every(row_width(v), row_height, label_height), at = 0;

		for (uint32_t i = 0; i < n; i++)
			if (v->rows.v[i].min != INT64_MIN)
				labels[i] = at++ % every == 0;
		return labels;
	}
	for (int wanted = 60; wanted > 0; wanted--)
		for (uint32_t i = 0; i < n; i++) {
			bool room = v->rows.v[i].min != INT64_MIN &&
				    heat_roundness(v->rows.v[i].min) == wanted;

			for (uint32_t j = i > apart ? i - apart + 1 : 0;
			     room && j < n && j < i + apart; j++)
				room = !labels[j];
			labels[i] |= room;
		}
	return labels;
}

void heat_parties(struct out *o, const struct matrix_view *v, const struct matrix_cell *c,
		  uint32_t most)
{
	for (uint32_t i = 0; i < c->n && i < most; i++) {
		const struct matrix_entry *e = &v->entries.v[c->at + i];
		const struct matrix_party *p = &v->parties.v[e->party];
		const struct matrix_name *s = &v->series.v[p->series].name;

		out_str(o, i ? "; " : "");
		if (!p->who.len || v->series.n > 1)
			flame_shown(o, s->text, s->len);
		if (p->who.len) {
			out_str(o, v->series.n > 1 ? ", " : "");
			flame_shown(o, p->who.text, p->who.len);
		}
		out_char(o, ' ');
		flame_number(o, e->count);
	}
	if (c->n > most) {
		out_str(o, "; and ");
		flame_number(o, c->n - most);
		out_str(o, " more");
	}
}
