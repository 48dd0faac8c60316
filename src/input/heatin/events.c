/* Event lines: "TIME VALUE [SERIES]", or the columns named by the options, blanks between them.
 *
 *	1234.567890 4096 cp            time in seconds
 *	1234567890123 4096 cp -r       in nanoseconds; the last column is the rest of the line
 */
#include "input/heatin/heatin_reader.h"

struct events {
	enum heatin_field fields[HEATIN_FIELDS_MAX];
	uint32_t nfields;
	double scale;  /* of values; 1: none */
	uint64_t unit; /* of time; 0: not known yet */
};

static void setup(struct heatin *in, struct events *e)
{
	const struct heatin_options *o = &in->options;

	if (o->nfields) {
		memcpy(e->fields, o->fields, sizeof(e->fields));
		e->nfields = o->nfields;
	} else {
		e->fields[e->nfields++] = HEATIN_TIME;
		if (in->mode != HEAT_SUBSECOND)
			e->fields[e->nfields++] = HEATIN_VALUE;
		e->fields[e->nfields++] = in->mode == HEAT_UTILIZATION ? HEATIN_WHO : HEATIN_SERIES;
	}
	e->unit = o->time_unit;
	e->scale = (o->factor != 0 ? o->factor : 1) *
		   (in->mode == HEAT_UTILIZATION ? 100 / (o->full > 0 ? o->full : 100) : 1);
}

static __attribute__((noinline)) uint64_t part_of(uint64_t unit, uint64_t billionths)
{
	return (uint64_t)((unsigned __int128)unit * billionths / 1000000000);
}

/* Reads ".25" of a unit of `unit` nanoseconds. Cuts off digits below 10^-9 of it. */
static inline __attribute__((always_inline)) const char *
scan_fraction(const char *p, const char *limit, uint64_t unit, uint64_t *ret)
{
	static const uint32_t tens[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
					 10000,      1000,      100,      10,      1 };
	const char *start = ++p;
	uint64_t v = 0;

	p = scan_digits(start, start + 9 < limit ? start + 9 : limit, &v);
	if (!p) { /* "12." */
		*ret = 0;
		return start;
	}
	v *= tens[p - start];
	while (p < limit && *p >= '0' && *p <= '9')
		p++;
	*ret = unit == 1000000000 ? v : part_of(unit, v);
	return p;
}

static const char *scan_time(struct events *e, const char *p, const char *limit, uint64_t *ret)
{
	uint64_t v, fraction = 0;

	p = scan_digits(p, limit, &v);
	if (!p)
		return NULL;
	if (!e->unit)
		e->unit = (p < limit && *p == '.') || v < 10000000000u ? 1000000000 : 1;
	if (p < limit && *p == '.')
		p = scan_fraction(p, limit, e->unit, &fraction);
	if (__builtin_mul_overflow(v, e->unit, &v) || __builtin_add_overflow(v, fraction, ret))
		return NULL;
	return p;
}

/* Multiplies by the factor, then cuts decimals off, downwards. */
static const char *scan_value(struct heatin *in, const struct events *e, const char *p,
			      const char *limit, int64_t *ret)
{
	bool minus = *p == '-';
	uint64_t v, fraction = 0;
	double d;

	p = scan_digits(p + minus, limit, &v);
	if (!p || v > INT64_MAX)
		return NULL;
	if (__builtin_expect(e->scale == 1 && !(p < limit && *p == '.'), 1)) {
		*ret = minus ? -(int64_t)v : (int64_t)v;
		return p;
	}
	if (p < limit && *p == '.')
		p = scan_fraction(p, limit, 1000000000, &fraction);
	d = (double)v + (double)fraction / 1e9;
	*ret = heatin_value(in, minus ? -d : d);
	return p;
}

/* Reads the line [p, end). Any digit in [end, limit) comes after another character. */
static inline bool line_of(struct heatin *in, struct events *e, const char *p, const char *end,
			   const char *limit)
{
	struct heatin_party party = { 0 };
	uint64_t time = 0;
	int64_t value = 0;
	uint32_t have = 0;

	for (uint32_t i = 0; i < e->nfields; i++) {
		const char *start;

		while (p < end && is_blank(*p))
			p++;
		if (p == end)
			break;
		start = p;
		switch (e->fields[i]) {
		case HEATIN_TIME: p = scan_time(e, p, limit, &time); break;
		case HEATIN_VALUE: p = scan_value(in, e, p, limit, &value); break;
		default:
			if (i + 1 == e->nfields && e->fields[i] != HEATIN_SKIP)
				for (p = end; is_blank(p[-1]);)
					p--;
			else
				while (p < end && !is_blank(*p))
					p++;
		}
		if (!p || (p < end && !is_blank(*p)))
			return false;
		if (e->fields[i] == HEATIN_SERIES) {
			party.series = start;
			party.series_len = (size_t)(p - start);
			party.padded = limit - start >= 8;
		} else if (e->fields[i] == HEATIN_WHO) {
			party.who = start;
			party.who_len = (size_t)(p - start);
		}
		have |= 1u << e->fields[i];
	}
	if (!(have & 1u << HEATIN_TIME) ||
	    (in->mode != HEAT_SUBSECOND && !(have & 1u << HEATIN_VALUE)))
		return false;
	heatin_event(in, time, value, &party);
	return true;
}

bool heatin_event_line(struct heatin *in, const char *line, size_t len)
{
	struct events e = { 0 };

	setup(in, &e);
	return line_of(in, &e, line, line + len, line + len);
}

static void events_lines(struct heatin *in, const char *text, size_t len)
{
	struct events *e = in->state;
	const char *end = text + len;

	if (!e->nfields)
		setup(in, e);
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));

		in->lines++;
		if (nl > text && !line_of(in, e, text, nl, end))
			heatin_skip(in);
		text = nl + 1;
	}
}

static bool events_recognise(const char *text, size_t len)
{
	return true;
}

const struct heatin_reader heatin_events = {
	.recognise = events_recognise,
	.state_size = sizeof(struct events),
	.lines = events_lines,
};
