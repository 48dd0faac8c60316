/* A sink that puts aggregations and printed events into the matrix of a heat map. */
#include "render/heatsink.h"

#include "input/heatin/heatin_reader.h"
#include "render/render.h"

/* A row with one number, or the last values of a distribution. */
struct seen {
	uint32_t agg;        /* index into image->aggs */
	uint32_t key, words; /* offsets into keys, counts */
};

struct heatsink {
	struct sink s;
	struct heatin *in;
	/* the program has some that are requested, so printf() makes no events */
	bool distributions;
	struct hash rows; /* aggregation and key -> 1 + index into seen */
	VEC(struct seen) seen;
	VEC(uint8_t) keys;
	VEC(int64_t) counts;
	struct heatin_keys key;
	struct out text;
};

static struct heatsink *heatsink_of(struct sink *s)
{
	return (struct heatsink *)s;
}

static bool is_wanted(const struct heatsink *k, const struct agg *a)
{
	return !k->in->options.agg || !strcmp(k->in->options.agg, a->name);
}

static struct err *heatsink_begin(struct sink *s)
{
	struct heatsink *k = heatsink_of(s);

	for (uint32_t i = 0; i < s->image->naggs; i++)
		k->distributions |= agg_is_distribution(&s->image->aggs[i]) &&
				    is_wanted(k, &s->image->aggs[i]);
	return NULL;
}

/* The program calls clear() or trunc() for it. */
static bool is_cleared(const struct image *img, uint32_t agg)
{
	for (uint32_t i = 0; i < img->nsegments; i++)
		for (uint32_t j = 0; j < img->segments[i].nactions; j++) {
			const struct action *a = &img->segments[i].actions[j];

			if (a->kind != ACT_CLEAR && (a->kind != ACT_TRUNC || a->nfields))
				continue;
			for (uint32_t n = 0; n < a->naggs; n++)
				if (a->aggs[n] == agg)
					return true;
		}
	return false;
}

/* Returns the words kept of a row, valid until the next call. */
static int64_t *kept_words(struct heatsink *k, const struct agg *agg, const uint8_t *key)
{
	cleanup_free uint8_t *id = xmalloc(sizeof(agg->id) + agg->key_size);
	uint64_t *at;
	bool new;

	memcpy(id, &agg->id, sizeof(agg->id));
	if (agg->key_size)
		memcpy(id + sizeof(agg->id), key, agg->key_size);
	at = hash_put(&k->rows, id, sizeof(agg->id) + agg->key_size, &new);
	if (new) {
		uint32_t nwords = agg_is_distribution(agg) ? agg->nwords : 1;

		*at = k->seen.n;
		vec_push(&k->seen, (struct seen){ agg->id, k->keys.n, k->counts.n });
		vec_reserve(&k->keys, agg->key_size);
		if (agg->key_size)
			memcpy(k->keys.v + k->keys.n, key, agg->key_size);
		k->keys.n += agg->key_size;
		for (uint32_t i = 0; i < nwords; i++)
			vec_push(&k->counts, 0);
	}
	return &k->counts.v[k->seen.v[*at].words];
}

/* Writes frames, and other text of several lines, in one line with ';' between them. */
static void join_lines(struct out *t)
{
	size_t n = 0;
	bool gap = false;

	for (size_t i = 0; i < t->n; i++) {
		char c = t->v[i];

		if (is_blank(c)) {
			gap |= c == '\n' && n;
			if (c == '\n' || !n || gap || t->v[n - 1] == ' ')
				continue;
		}
		if (gap)
			t->v[n++] = ';';
		gap = false;
		t->v[n++] = c;
	}
	while (n && t->v[n - 1] == ' ')
		n--;
	t->n = n;
}

static void take_keys(struct heatsink *k, const struct agg *agg, const uint8_t *key)
{
	keys_begin(&k->key);
	for (uint32_t i = 0; i < agg->nkeys; i++) {
		const struct field *f = &agg->keys[i];
		const char *text;
		uint32_t n;

		if (field_text(k->s.image, f, key, &text, &n)) {
			keys_add(k->in, &k->key, text, n, false);
			continue;
		}
		k->text.n = 0;
		if (f->kind == FIELD_INT)
			out_signed(&k->text,
				   field_int(f, key, field_traits(k->s.types, f) & TRAIT_SIGNED),
				   0);
		else
			key_print(&k->s, &k->text, f, key);
		join_lines(&k->text);
		keys_add(k->in, &k->key, k->text.v, k->text.n, f->kind == FIELD_INT);
	}
}

static struct heatin_party party(const struct heatsink *k, const struct agg *agg)
{
	const char *name = *agg->name ? agg->name : "all";

	return keys_party(&k->key, name, strlen(name));
}

/* For a map of offsets or percents, shows all rows of lquantize(), because empty rows are an answer
 * too. */
static void take_axis(struct heatsink *k, const struct agg *agg, struct heatin_party *p)
{
	int64_t min, max;

	if (k->in->mode == HEAT_LATENCY || agg->func != AGG_LQUANTIZE ||
	    (k->in->made && k->in->matrix.axis.whole))
		return;
	for (uint32_t i = 1; i + 2 < agg->nwords; i++) {
		hist_bounds(agg, i, &min, &max);
		heatin_bucket(k->in, k->key.time, min, max, 0, p);
	}
	k->in->matrix.axis.whole = k->in->made;
}

static void take_distribution(struct heatsink *k, const struct agg_view *v,
			      const struct agg_row *row, bool cleared)
{
	const struct agg *agg = v->agg;
	struct heatin_party p = party(k, agg);
	uint32_t first = UINT32_MAX, last = 0, n = agg->nwords - 1;
	int64_t *was = NULL;

	take_axis(k, agg, &p);
	if (!cleared)
		was = kept_words(k, agg, row->key) + 1;
	for (uint32_t i = 0; i < n; i++)
		if (row->words[i + 1]) {
			first = i < first ? i : first;
			last = i;
		}
	for (uint32_t i = first; i <= last && i < n; i++) {
		int64_t count = agg_normalized(v, row->words[i + 1]), min, max,
			more = (int64_t)((uint64_t)count - (was ? (uint64_t)was[i] : 0));

		hist_bounds(agg, i, &min, &max);
		heatin_bucket(k->in, k->key.time, min, max, more > 0 ? (uint64_t)more : 0, &p);
		if (was)
			was[i] = count;
	}
}

static void heatsink_take_number(struct heatsink *k, const struct agg_view *v,
				 const struct agg_row *row, bool cleared)
{
	int64_t *value = kept_words(k, v->agg, row->key), now = agg_row_value(v, row);

	if (cleared && (v->agg->func == AGG_COUNT || v->agg->func == AGG_SUM))
		*value += now;
	else
		*value = now;
}

static void take_row(struct heatsink *k, const struct agg_view *v, const struct agg_row *row,
		     bool cleared)
{
	bool distribution = agg_is_distribution(v->agg);

	if (!is_wanted(k, v->agg) || distribution != k->distributions) {
		k->in->others++;
		return;
	}
	take_keys(k, v->agg, row->key);
	if (!k->key.has_time)
		k->in->untimed++;
	else if (distribution)
		take_distribution(k, v, row, cleared);
	else
		heatsink_take_number(k, v, row, cleared);
}

static struct err *printa(struct sink *s, const struct record_view *r, const struct action *a,
			  struct agg_view *const *aggs, uint32_t n)
{
	struct heatsink *k = heatsink_of(s);

	for (uint32_t j = 0; j < n; j++) {
		bool cleared = is_cleared(s->image, aggs[j]->agg->id);

		for (uint32_t i = 0; i < aggs[j]->nrows; i++)
			take_row(k, aggs[j], &aggs[j]->rows[i], cleared);
	}
	return NULL;
}

/* printf() makes event lines. Beside distributions, its text is a message. */
static struct err *action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct heatsink *k = heatsink_of(s);

	if (a->kind != ACT_PRINTF)
		return NULL;
	k->text.n = 0;
	action_format(s, &k->text, r, a);
	if (k->distributions)
		sink_message(s, k->text.v, k->text.n);
	else
		heatin_feed(k->in, k->text.v, k->text.n);
	return NULL;
}

static struct err *heatsink_message(struct heatsink *k)
{
	sink_message(&k->s, k->text.v, k->text.n);
	return NULL;
}

static struct err *fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct heatsink *k = heatsink_of(s);

	k->text.n = 0;
	fault_message(s, &k->text, img, f);
	return heatsink_message(k);
}

static struct err *drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct heatsink *k = heatsink_of(s);

	k->in->drops += count;
	k->text.n = 0;
	drop_message(s, &k->text, kind, cpu, count);
	return heatsink_message(k);
}

/* The numbers are complete: each is an event. */
static struct err *heatsink_end(struct sink *s)
{
	struct heatsink *k = heatsink_of(s);

	for (uint32_t i = 0; i < k->seen.n && !k->distributions; i++) {
		const struct seen *e = &k->seen.v[i];
		const struct agg *agg = &s->image->aggs[e->agg];
		struct heatin_party p;

		take_keys(k, agg, k->keys.v + e->key);
		p = party(k, agg);
		heatin_event(k->in, k->key.time, heatin_value(k->in, (double)k->counts.v[e->words]),
			     &p);
	}
	return NULL;
}

static void sink_free(struct sink *s)
{
	struct heatsink *k = heatsink_of(s);

	hash_fini(&k->rows);
	vec_fini(&k->seen);
	vec_fini(&k->keys);
	vec_fini(&k->counts);
	keys_fini(&k->key);
	out_fini(&k->text);
	free(k);
}

static const struct sink_ops ops = {
	.name = "heat",
	.begin = heatsink_begin,
	.end = heatsink_end,
	.action = action,
	.printa = printa,
	.fault = fault,
	.drop = drop,
	.format = action_text,
	.free = sink_free,
};

struct sink *heatsink_new(struct heatin *in)
{
	struct heatsink *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->in = in;
	return &k->s;
}
