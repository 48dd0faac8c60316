/* Finds the format of a heat map's input, and puts the input into a matrix. */
#define _GNU_SOURCE
#include "input/heatin/heatin.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "input/heatin/heatin_reader.h"

enum {
	CACHE_BITS = 10,
};
static const uint64_t SECOND = 1000000000;

static const struct heatin_reader *const readers[HEATIN_NFORMATS] = {
#define FORMAT(id, reader, name, of) [HEATIN_##id] = &heatin_##reader,
#include "input/heatin/formats.def"
#undef FORMAT
};

static const char *const names[HEATIN_NFORMATS] = {
#define FORMAT(id, reader, name, of) [HEATIN_##id] = name,
#include "input/heatin/formats.def"
#undef FORMAT
};

const char *heatin_format_name(enum heatin_format f)
{
	return f < HEATIN_NFORMATS ? names[f] : NULL;
}

enum heatin_format heatin_format_named(const char *name)
{
	for (int f = HEATIN_AUTO + 1; f < HEATIN_NFORMATS; f++)
		if (!strcmp(names[f], name))
			return (enum heatin_format)f;
	return HEATIN_AUTO;
}

static const char *const modes[HEAT_NMODES] = { "latency", "utilization", "subsecond" };

const char *heat_mode_name(enum heat_mode m)
{
	return modes[m];
}

enum heat_mode heat_mode_named(const char *name, size_t len)
{
	int m = 0;

	while (m < HEAT_NMODES && (strlen(modes[m]) != len || memcmp(modes[m], name, len)))
		m++;
	return (enum heat_mode)m;
}

void heatin_init(struct heatin *in, const struct heatin_options *o)
{
	*in = (struct heatin){ .options = *o, .mode = o->mode };
	/* len is the series' length plus one; 0: an empty slot */
	in->cache = xcalloc(1 << CACHE_BITS, sizeof(*in->cache));
}

static void end_reader(struct heatin *in)
{
	if (in->reader && in->reader->fini)
		in->reader->fini(in);
	free(in->state);
	in->reader = NULL;
	in->state = NULL;
}

void heatin_fini(struct heatin *in)
{
	end_reader(in);
	if (in->made)
		matrix_fini(&in->matrix);
	lines_fini(&in->text);
	free(in->unit);
	free(in->title);
	free(in->cache);
}

void heatin_skip(struct heatin *in)
{
	if (!in->skipped++)
		in->first_skipped = in->lines;
}

struct matrix *heatin_matrix(struct heatin *in, bool buckets)
{
	struct matrix_axis axis = in->options.axis;
	uint64_t step = in->options.step;

	if (!in->made) {
		if (!step)
			step = in->options.time_unit > SECOND ? in->options.time_unit : SECOND;
		if (buckets)
			axis = (struct matrix_axis){ .kind = MATRIX_BUCKETS };
		matrix_init(&in->matrix, step, &axis);
		in->made = true;
	}
	return (in->matrix.axis.kind == MATRIX_BUCKETS) == buckets ? &in->matrix : NULL;
}

/* Nanoseconds of a time in units of options.time_unit. */
static uint64_t heatin_time(const struct heatin *in, uint64_t time)
{
	uint64_t unit = in->options.time_unit;

	if (!unit)
		unit = time < 10 * SECOND ? SECOND : 1;
	return time > UINT64_MAX / unit ? UINT64_MAX : time * unit;
}

int64_t heatin_value(const struct heatin *in, double value)
{
	if (in->options.factor != 0)
		value *= in->options.factor;
	if (in->mode == HEAT_UTILIZATION)
		value *= 100 / (in->options.full > 0 ? in->options.full : 100);
	value = floor(value);
	return value >= 0x1p63 ? INT64_MAX : value >= -0x1p63 ? (int64_t)value : INT64_MIN;
}

/* Returns a text of at most 8 bytes as a number; together with the length it identifies the
 * text. */
static inline uint64_t short_text(const struct heatin_party *p)
{
	uint64_t text = 0;

	if (p->padded) {
		memcpy(&text, p->series, 8);
		return p->series_len ? text << (64 - 8 * p->series_len) : 0;
	}
	for (size_t i = p->series_len; i-- > 0;)
		text = text << 8 | (uint8_t)p->series[i];
	return p->series_len ? text << (64 - 8 * p->series_len) : 0;
}

uint32_t heatin_series(struct matrix *m, const char *name, size_t len)
{
	return len ? matrix_series(m, name, len) : matrix_series(m, "all", 3);
}

static uint32_t make_party(struct matrix *m, const struct heatin_party *p)
{
	return matrix_party(m, heatin_series(m, p->series, p->series_len), p->who, p->who_len);
}

static inline uint32_t party_of(struct heatin *in, struct matrix *m, const struct heatin_party *p)
{
	struct heatin_cached *c;
	uint64_t text;

	if (p->who_len || p->series_len > 8)
		return make_party(m, p);
	text = short_text(p);
	c = &in->cache[(text * 0x9e3779b97f4a7c15u) >> (64 - CACHE_BITS)];
	if (c->text != text || c->len != p->series_len + 1)
		*c = (struct heatin_cached){ text, (uint32_t)p->series_len + 1, make_party(m, p) };
	return c->party;
}

void heatin_event(struct heatin *in, uint64_t time, int64_t value, const struct heatin_party *p)
{
	struct matrix *m = __builtin_expect(in->made && in->matrix.axis.kind != MATRIX_BUCKETS, 1)
				   ? &in->matrix
				   : heatin_matrix(in, false);

	if (!m) {
		in->mixed++;
		return;
	}
	in->events++;
	matrix_event(m, time, in->mode == HEAT_SUBSECOND ? (int64_t)(time % SECOND) : value,
		     party_of(in, m, p));
}

void heatin_bucket(struct heatin *in, uint64_t time, int64_t min, int64_t max, uint64_t count,
		   struct heatin_party *p)
{
	struct matrix *m = heatin_matrix(in, true);

	if (!m) {
		in->mixed++;
		return;
	}
	in->events += count;
	if (count && !p->number)
		p->number = 1 + party_of(in, m, p);
	matrix_bucket(m, time, min, max, count ? p->number - 1 : 0, count);
}

bool heatin_idle(struct heatin *in)
{
	return in->mode != HEAT_UTILIZATION || !in->made ||
	       in->matrix.axis.kind == MATRIX_BUCKETS || matrix_fill(&in->matrix, 0);
}

/* --- keys --- */

void keys_begin(struct heatin_keys *k)
{
	k->has_time = false;
	k->n = 0;
	k->series.n = k->who.n = 0;
}

void keys_fini(struct heatin_keys *k)
{
	vec_fini(&k->series);
	vec_fini(&k->who);
}

#define append(vec, text, len) \
	do { \
		vec_reserve(vec, len); \
		if (len) \
			memcpy((vec)->v + (vec)->n, text, len); \
		(vec)->n += (uint32_t)(len); \
	} while (0)

void keys_add(struct heatin *in, struct heatin_keys *k, const char *text, size_t len, bool number)
{
	uint32_t at = k->n + k->has_time + 1,
		 by = in->options.by ? in->options.by : in->mode != HEAT_UTILIZATION;
	int64_t v = 0;

	if (at == (in->options.time_key ? in->options.time_key : 1) && number &&
	    heatin_integer(text, len, &v) && v >= 0) {
		k->time = heatin_time(in, (uint64_t)v);
		k->has_time = true;
		return;
	}
	if (k->n < by) {
		if (k->n)
			append(&k->series, ", ", 2u);
		append(&k->series, text, len);
	} else {
		if (k->n > by)
			append(&k->who, ", ", 2u);
		append(&k->who, text, len);
	}
	k->n++;
}

struct heatin_party keys_party(const struct heatin_keys *k, const char *agg, size_t agg_len)
{
	if (!k->series.n)
		return (struct heatin_party){ agg, k->who.v, agg_len, k->who.n };
	return (struct heatin_party){ k->series.v, k->who.v, k->series.n, k->who.n };
}

bool heatin_integer(const char *s, size_t n, int64_t *ret)
{
	bool minus = n && *s == '-';
	uint64_t v = 0;

	if (scan_digits(s + minus, s + n, &v) != s + n || v > INT64_MAX)
		return false;
	*ret = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

/* --- input --- */

/* the reader of events recognises any text */
static enum heatin_format heatin_recognise(const char *text, size_t len)
{
	int f = HEATIN_NFORMATS - 1;

	while (!readers[f]->recognise(text, len))
		f--;
	return (enum heatin_format)f;
}

static void start(void *arg, const char *text, size_t len)
{
	struct heatin *in = arg;

	in->format = in->options.format ? in->options.format : heatin_recognise(text, len);
	in->reader = readers[in->format];
	in->state = xcalloc(1, in->reader->state_size);
	in->lines = in->events = in->skipped = in->first_skipped = 0;
}

static void whole_lines(void *arg, const char *text, size_t len)
{
	struct heatin *in = arg;

	in->reader->lines(in, text, len);
}

static void too_long(void *arg)
{
	struct heatin *in = arg;

	in->lines++;
	heatin_skip(in);
}

static const struct lines_ops ops = { .begin = start, .lines = whole_lines, .too_long = too_long };

void heatin_feed(struct heatin *in, const char *text, size_t len)
{
	lines_feed(&in->text, &ops, in, text, len);
}

void heatin_end(struct heatin *in)
{
	lines_end(&in->text, &ops, in);
	if (in->reader->end)
		in->reader->end(in);
	end_reader(in);
}

static void feed(void *arg, const char *text, size_t len)
{
	heatin_feed(arg, text, len);
}

struct err *heatin_read(struct heatin *in, const char *path)
{
	bool standard = !strcmp(path, "-");
	cleanup_close int file = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	struct err *e;

	if (!standard && file < 0)
		return err_errno(errno, "%s: open", path);
	e = lines_read(standard ? STDIN_FILENO : file, standard ? "standard input" : path, feed,
		       in);
	if (e)
		return e;
	heatin_end(in);
	return NULL;
}
