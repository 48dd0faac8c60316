/* The text of DTrace and of descry: distributions of aggregations that have the time among their
 * keys.
 *
 *	              928  sh                                                    11269           keys
 *	           value  ------------- Distribution ------------- count
 *	             256 |                                         0
 *	             512 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1
 *	            1024 |                                         0
 *
 * and, for utilization, numbers: "  928  0   500000000". A row extends to the label of the next; "< 0" and ">= 1000" are
 * open. Below zero a label of quantize() is the bound nearest to zero; labels that double count as
 * labels of quantize().
 */
#define _GNU_SOURCE
#include "input/heatin/heatin_reader.h"

struct bucket {
	int64_t label;
	bool below, above; /* "< LABEL", ">= LABEL" */
	uint64_t count;
};

struct dtrace {
	struct heatin_keys keys;
	VEC(char) line; /* the keys' line */
	uint64_t line_no;
	bool has_line, distribution;
	VEC(struct bucket) buckets;
};

/* Columns are two blanks apart, or one blank in front of a number at the end of a long text. */
static void split_keys(struct heatin *in, struct heatin_keys *k, const char *s, size_t n)
{
	size_t at = 0, end;
	int64_t v;

	keys_begin(k);
	for (; at < n; at = end) {
		const char *gap = memmem(s + at, n - at, "  ", 2), *blank = NULL;

		end = gap ? (size_t)(gap - s) : n;
		/* numbers may be one blank apart when they fill their columns */
		while (at < end && (is_blank(s[at]) ||
				    ((blank = memchr(s + at, ' ', end - at)) &&
				     heatin_integer(s + at, (size_t)(blank - s) - at, &v)))) {
			size_t next = is_blank(s[at]) ? at + 1 : (size_t)(blank - s);

			if (!is_blank(s[at]))
				keys_add(in, k, s + at, next - at, true);
			at = next;
		}
		if (end > at)
			keys_add(in, k, s + at, end - at, heatin_integer(s + at, end - at, &v));
		end += end < n;
	}
}

/* ..., -2, -1, 0, 1, 2, 4, ... */
static bool is_quantize(const struct dtrace *d)
{
	for (uint32_t i = 0; i + 1 < d->buckets.n; i++) {
		int64_t a = d->buckets.v[i].label, b = d->buckets.v[i + 1].label;

		if (d->buckets.v[i].below || d->buckets.v[i + 1].above ||
		    b != (a == -1 ? 0
			  : a < 0 ? a / 2
			  : a     ? a * 2
				  : 1))
			return false;
	}
	return true;
}

static void end_distribution(struct heatin *in, struct dtrace *d)
{
	bool negative = is_quantize(d);
	struct heatin_party party;

	if (!d->distribution)
		return;
	d->distribution = false;
	split_keys(in, &d->keys, d->line.v, d->line.n);
	if (!d->keys.has_time) {
		in->untimed++;
		d->buckets.n = 0;
		return;
	}
	party = keys_party(&d->keys, "all", 3);
	for (uint32_t i = 0; i < d->buckets.n; i++) {
		const struct bucket *b = &d->buckets.v[i],
				    *next = i + 1 < d->buckets.n ? b + 1 : NULL;
		int64_t min = b->below ? INT64_MIN : b->label;
		int64_t max = b->below                                    ? b->label - 1
			      : b->above                                  ? INT64_MAX
			      : next                                      ? next->label - 1
			      : b->label > 0 && b->label <= INT64_MAX / 2 ? b->label * 2 - 1
									  : b->label;

		if (next && next->below)
			max = b->label;
		if (negative && b->label < 0) {
			max = b->label;
			min = i ? b[-1].label + 1 : b->label * 2 + 1;
		}
		if (max < min || (i == 0 && !b->count) || (!next && !b->count))
			continue; /* the empty rows at both ends, and rows that no tracer prints */
		heatin_bucket(in, d->keys.time, min, max, b->count, &party);
	}
	d->buckets.n = 0;
}

/* "  512 |@@@@    3", "  < 0 |", "  >= 100 |" */
static bool bucket_line(struct dtrace *d, const char *s, size_t n)
{
	struct bucket b = { 0 };
	const char *bar = memchr(s, '|', n), *end = s + n;
	size_t i;
	int64_t count;

	if (!bar)
		return false;
	for (i = n; i && s[i - 1] != ' ' && s[i - 1] != '|'; i--)
		;
	if (!heatin_integer(s + i, n - i, &count))
		return false;
	end = bar;
	while (end > s && is_blank(end[-1]))
		end--;
	if (end - s > 2 && s[0] == '<' && s[1] == ' ') {
		b.below = true;
		s += 2;
	} else if (end - s > 3 && s[0] == '>' && s[1] == '=' && s[2] == ' ') {
		b.above = true;
		s += 3;
	}
	if (!heatin_integer(s, (size_t)(end - s), &b.label) || (b.below && b.label == INT64_MIN))
		return false;
	b.count = count > 0 ? (uint64_t)count : 0;
	vec_push(&d->buckets, b);
	return true;
}

/* Handles a line that is no header of a distribution: a row of numbers, or other text. */
static void settle_line(struct heatin *in, struct dtrace *d)
{
	const char *s = d->line.v;
	size_t n = d->line.n, i = n;
	struct heatin_party party;
	int64_t value;

	if (!d->has_line)
		return;
	d->has_line = false;
	while (i && !is_blank(s[i - 1]))
		i--;
	if (i && heatin_integer(s + i, n - i, &value)) {
		split_keys(in, &d->keys, s, i);
		if (d->keys.has_time && !(in->made && in->matrix.axis.kind == MATRIX_BUCKETS)) {
			party = keys_party(&d->keys, "all", 3);
			heatin_event(in, d->keys.time, heatin_value(in, (double)value), &party);
			return;
		}
		if (d->keys.has_time) {
			in->others++;
			return;
		}
	}
	if (!in->skipped++)
		in->first_skipped = d->line_no;
}

static void dtrace_lines(struct heatin *in, const char *text, size_t len)
{
	struct dtrace *d = in->state;
	const char *end = text + len;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text)), *s = text, *e = nl;

		text = nl + 1;
		in->lines++;
		while (s < e && is_blank(*s))
			s++;
		while (e > s && is_blank(e[-1]))
			e--;
		if (s == e) {
			end_distribution(in, d);
			settle_line(in, d);
		} else if (memmem(s, (size_t)(e - s), "- Distribution -", 16)) {
			end_distribution(in, d);
			if (!d->has_line)
				d->line.n = 0;
			d->has_line = false;
			d->distribution = true;
		} else if (!d->distribution || !bucket_line(d, s, (size_t)(e - s))) {
			end_distribution(in, d);
			settle_line(in, d);
			d->line.n = 0;
			vec_reserve(&d->line, (size_t)(e - s));
			memcpy(d->line.v, s, (size_t)(e - s));
			d->line.n = (uint32_t)(e - s);
			d->line_no = in->lines;
			d->has_line = true;
		}
	}
}

static void dtrace_finish(struct heatin *in)
{
	struct dtrace *d = in->state;

	end_distribution(in, d);
	settle_line(in, d);
}

static void dtrace_fini(struct heatin *in)
{
	struct dtrace *d = in->state;

	keys_fini(&d->keys);
	vec_fini(&d->line);
	vec_fini(&d->buckets);
}

static bool dtrace_recognise(const char *text, size_t len)
{
	return len && memmem(text, len, "- Distribution -", 16);
}

const struct heatin_reader heatin_dtrace = {
	.recognise = dtrace_recognise,
	.state_size = sizeof(struct dtrace),
	.lines = dtrace_lines,
	.end = dtrace_finish,
	.fini = dtrace_fini,
};
