/* JSON: the lines that descry --json prints (aggregations, and printf() as event lines), and the
 * document that descry heat --json writes, whole. */
#define _GNU_SOURCE
#include "input/heatin/heatin_reader.h"

#include <jansson.h>

#include "input/json_room.h"

static bool text_is(const json_t *v, const char *text)
{
	const char *s = json_string_value(v);

	return s && !strcmp(s, text);
}

/* --- lines of descry --json --- */

struct objects {
	struct heatin_keys keys;
};

static void add_key(struct heatin *in, struct heatin_keys *k, const json_t *v)
{
	char number[32], *text;

	if (json_is_string(v)) {
		keys_add(in, k, json_string_value(v), json_string_length(v), false);
	} else if (json_is_integer(v)) {
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
		keys_add(in, k, number, strlen(number), true);
	} else { /* a stack, a struct */
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		keys_add(in, k, text ? text : "?", text ? strlen(text) : 1, false);
		free(text);
	}
}

/* {"min":1,"max":1,"count":3}; null is open. */
static bool add_bucket(struct heatin *in, const struct heatin_keys *k, const json_t *v,
		       struct heatin_party *p)
{
	const json_t *min = json_object_get(v, "min"), *max = json_object_get(v, "max"),
		     *n = json_object_get(v, "count");
	int64_t lo = json_is_integer(min) ? json_integer_value(min) : INT64_MIN;
	int64_t hi = json_is_integer(max) ? json_integer_value(max) : INT64_MAX;

	if (!min || !max || !json_is_integer(n) || lo > hi)
		return false;
	if (json_integer_value(n) > 0)
		heatin_bucket(in, k->time, lo, hi, (uint64_t)json_integer_value(n), p);
	return true;
}

static bool aggregation(struct heatin *in, struct heatin_keys *k, const json_t *o)
{
	const json_t *name = json_object_get(o, "name"), *keys = json_object_get(o, "keys"),
		     *distribution = json_object_get(o, "distribution"),
		     *value = json_object_get(o, "value"), *v;
	struct heatin_party party;
	const char *agg = json_is_string(name) ? json_string_value(name) : "";
	bool good = true;
	size_t i;

	if (in->options.agg && strcmp(in->options.agg, agg)) {
		in->others++;
		return true;
	}
	keys_begin(k);
	json_array_foreach((json_t *)keys, i, v) add_key(in, k, v);
	if (!k->has_time) {
		in->untimed++;
		return true;
	}
	party = keys_party(k, *agg ? agg : "all", *agg ? strlen(agg) : 3);
	json_array_foreach((json_t *)distribution, i, v) good &= add_bucket(in, k, v, &party);
	if (!distribution && json_is_integer(value)) {
		if (in->made && in->matrix.axis.kind == MATRIX_BUCKETS)
			in->others++;
		else
			heatin_event(in, k->time,
				     heatin_value(in, (double)json_integer_value(value)), &party);
	}
	return good && (distribution || json_is_integer(value));
}

/* Handles the lines of a printf(). */
static bool printed(struct heatin *in, const json_t *o)
{
	const char *s = json_string_value(json_object_get(o, "text")), *nl;
	bool good = true;

	for (; s && *s; s = *nl ? nl + 1 : nl) {
		nl = strchrnul(s, '\n');
		if (nl > s)
			good &= heatin_event_line(in, s, (size_t)(nl - s));
	}
	return good;
}

static bool object(struct heatin *in, struct heatin_keys *k, const json_t *o)
{
	const json_t *type = json_object_get(o, "type");

	if (text_is(type, "aggregation"))
		return aggregation(in, k, o);
	if (text_is(type, "printf"))
		return printed(in, o);
	if (text_is(type, "drop"))
		in->drops += (uint64_t)json_integer_value(json_object_get(o, "count"));
	return json_is_string(type);
}

/* Most lines are short. For a long one, json_room() first checks the memory that reading takes. */
enum { SHORT_LINE = 64 << 10 };

static json_t *line_read(const char *text, size_t n)
{
	if (n > SHORT_LINE && err_drop(json_room(text, n)))
		return NULL;
	return json_loadb(text, n, JSON_ALLOW_NUL, NULL);
}

static void json_lines(struct heatin *in, const char *text, size_t len)
{
	struct objects *s = in->state;
	const char *end = text + len;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		json_t *o;

		in->lines++;
		if (nl > text) {
			o = line_read(text, (size_t)(nl - text));
			if (!o || !object(in, &s->keys, o))
				heatin_skip(in);
			json_decref(o);
		}
		text = nl + 1;
	}
}

static void json_fini(struct heatin *in)
{
	struct objects *s = in->state;

	keys_fini(&s->keys);
}

static const char *first_brace(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && is_blank(text[i]))
		i++;
	return i < len && text[i] == '{' ? text + i : NULL;
}

static bool json_recognise(const char *text, size_t len)
{
	return first_brace(text, len) != NULL;
}

const struct heatin_reader heatin_json = {
	.recognise = json_recognise,
	.state_size = sizeof(struct objects),
	.lines = json_lines,
	.fini = json_fini,
};

/* --- a heat map --- */

struct heatmap {
	VEC(char) text;
};

static void heatmap_lines(struct heatin *in, const char *text, size_t len)
{
	struct heatmap *h = in->state;

	if (len > (1u << 30) - h->text.n) {
		/* longer than any map: the rest is not read, and this is reported */
		heatin_skip(in);
		return;
	}
	vec_reserve(&h->text, len);
	memcpy(h->text.v + h->text.n, text, len);
	h->text.n += (uint32_t)len;
	in->lines++;
}

struct document {
	const json_t *rows, *series, *parties;
	/* By index: 1 + their index in the matrix, 0 not looked up yet. Many cells have one party,
	 * and many parties one series. */
	uint32_t *series_numbers, *party_numbers;
	uint64_t first, step;
};

/* Finds the party of this index. Returns false when the document has none. */
static bool find_party(struct matrix *m, const struct document *d, size_t i,
		       struct heatin_party *ret)
{
	const json_t *party = json_array_get(d->parties, i), *who = json_array_get(party, 1);
	size_t at = (size_t)json_integer_value(json_array_get(party, 0));
	const json_t *name = json_object_get(json_array_get(d->series, at), "name");

	if (!party || !json_is_string(name))
		return false;
	if (!d->series_numbers[at])
		d->series_numbers[at] =
			1 + heatin_series(m, json_string_value(name), json_string_length(name));
	if (!d->party_numbers[i])
		d->party_numbers[i] = 1 + matrix_party(m, d->series_numbers[at] - 1,
						       json_string_value(who),
						       json_string_length(who));
	*ret = (struct heatin_party){ .number = d->party_numbers[i] };
	return true;
}

static bool take_cells(struct heatin *in, struct matrix *m, const struct document *d,
		       const json_t *column)
{
	const json_t *at = json_object_get(column, "column"),
		     *cells = json_object_get(column, "cells");
	uint64_t c = (uint64_t)json_integer_value(at);

	if (!json_is_integer(at) || json_integer_value(at) < 0 || json_array_size(cells) % 3 ||
	    c > UINT64_MAX / d->step - d->first - 1)
		return false;
	for (size_t i = 0; i < json_array_size(cells); i += 3) {
		const json_t *row = json_array_get(
			d->rows, (size_t)json_integer_value(json_array_get(cells, i)));
		const json_t *n = json_array_get(cells, i + 2), *min = json_array_get(row, 0),
			     *max = json_array_get(row, 1);
		struct heatin_party p;

		if (!row || !json_is_integer(n) || json_integer_value(n) <= 0 ||
		    !find_party(m, d, (size_t)json_integer_value(json_array_get(cells, i + 1)), &p))
			return false;
		heatin_bucket(in, (d->first + c) * d->step,
			      json_is_integer(min) ? json_integer_value(min) : INT64_MIN,
			      json_is_integer(max) ? json_integer_value(max) : INT64_MAX,
			      (uint64_t)json_integer_value(n), &p);
	}
	return true;
}

static bool take_document(struct heatin *in, const json_t *o)
{
	const json_t *time = json_object_get(o, "time"), *mode = json_object_get(o, "mode"),
		     *value = json_object_get(o, "value"), *unit = json_object_get(value, "unit"),
		     *columns = json_object_get(o, "columns"), *title = json_object_get(o, "title"),
		     *v;
	int64_t first = json_integer_value(json_object_get(time, "first")),
		step = json_integer_value(json_object_get(time, "step"));
	struct document d = { json_object_get(value, "rows"),
			      json_object_get(o, "series"),
			      json_object_get(o, "parties"),
			      NULL,
			      NULL,
			      (uint64_t)first,
			      (uint64_t)step };
	struct matrix *m;
	bool good = true;
	size_t i;

	if (!text_is(json_object_get(o, "type"), "heatmap") || step <= 0 || first < 0 ||
	    (uint64_t)first >= UINT64_MAX / (uint64_t)step - 1 || !json_is_array(columns))
		return false;
	if (!in->options.step)
		in->options.step = d.step;
	if (mode && heat_mode_named(json_string_value(mode) ? json_string_value(mode) : "",
				    json_string_length(mode)) < HEAT_NMODES)
		in->mode = heat_mode_named(json_string_value(mode), json_string_length(mode));
	if (json_is_string(unit) && !in->unit)
		in->unit = xstrdup(json_string_value(unit));
	if (json_is_string(title) && !in->title)
		in->title = xstrdup(json_string_value(title));
	m = heatin_matrix(in, true);
	if (!m) {
		in->mixed++;
		return true;
	}
	m->axis.whole = true;
	json_array_foreach((json_t *)d.rows, i, v)
	{
		const json_t *min = json_array_get(v, 0), *max = json_array_get(v, 1);

		if (!min || !max ||
		    (json_is_integer(min) && json_is_integer(max) &&
		     json_integer_value(min) > json_integer_value(max)))
			return false;
		matrix_bucket(m, 0, json_is_integer(min) ? json_integer_value(min) : INT64_MIN,
			      json_is_integer(max) ? json_integer_value(max) : INT64_MAX, 0, 0);
	}
	d.series_numbers = xcalloc(json_array_size(d.series) + 1, sizeof(*d.series_numbers));
	d.party_numbers = xcalloc(json_array_size(d.parties) + 1, sizeof(*d.party_numbers));
	json_array_foreach((json_t *)columns, i, v) good &= take_cells(in, m, &d, v);
	free(d.series_numbers);
	free(d.party_numbers);
	return good;
}

static void heatmap_end(struct heatin *in)
{
	struct heatmap *h = in->state;
	struct err *e = json_room(h->text.v, h->text.n);
	json_t *o = e ? NULL : json_loadb(h->text.v, h->text.n, JSON_ALLOW_NUL, NULL);

	if (!o || !take_document(in, o))
		heatin_skip(in);
	err_free(e);
	json_decref(o);
}

static void heatmap_fini(struct heatin *in)
{
	struct heatmap *h = in->state;

	vec_fini(&h->text);
}

static bool heatmap_recognise(const char *text, size_t len)
{
	const char *brace = first_brace(text, len);
	size_t head = brace ? len - (size_t)(brace - text) : 0;

	return brace && memmem(brace, head < 64 ? head : 64, "\"heatmap\"", 9);
}

const struct heatin_reader heatin_heatmap = {
	.recognise = heatmap_recognise,
	.state_size = sizeof(struct heatmap),
	.lines = heatmap_lines,
	.end = heatmap_end,
	.fini = heatmap_fini,
};
