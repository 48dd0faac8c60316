/* printa() and the aggregations at the end of a run. */
#include "render/render.h"

/* agghist draws the values of a scalar aggregation as bars; aggpack puts each distribution on a
 * line; aggtable has the last key across. */
enum layout { LAYOUT_PLAIN, LAYOUT_HIST, LAYOUT_PACK, LAYOUT_TABLE };

static enum layout layout_of(const struct sink *s, const struct agg *a)
{
	if (!s->options || !a->nkeys)
		return LAYOUT_PLAIN;
	if (opt_on(s->options, OPT_AGGTABLE) && (a->nkeys > 1 || agg_is_distribution(a)))
		return LAYOUT_TABLE;
	if (opt_on(s->options, OPT_AGGHIST) && (a->func == AGG_COUNT || a->func == AGG_SUM))
		return LAYOUT_HIST;
	if (opt_on(s->options, OPT_AGGPACK) &&
	    (a->func == AGG_QUANTIZE || a->func == AGG_LQUANTIZE))
		return LAYOUT_PACK;
	return LAYOUT_PLAIN;
}

static void print_keys(struct sink *s, struct out *o, const struct agg *a, const uint8_t *key)
{
	for (uint32_t i = 0; i < a->nkeys; i++)
		key_print(s, o, &a->keys[i], key);
}

static int packed_width(const struct field *f)
{
	if (f->kind == FIELD_INT && f->size < 8)
		return f->size == 4 ? 8 : f->size == 2 ? 5 : 3;
	return 16;
}

static int packed_keys_width(const struct agg *a)
{
	int width = 0;

	for (uint32_t i = 0; i < a->nkeys; i++)
		width += packed_width(&a->keys[i]) + 1;
	return width;
}

/* Keys in columns as narrow as numbers: text is to the right of 16. */
static void print_packed_keys(struct sink *s, struct out *o, const struct agg *a,
			      const uint8_t *key)
{
	char buf[ADDRESS_TEXT];

	for (uint32_t i = 0; i < a->nkeys; i++) {
		const struct field *f = &a->keys[i];
		const char *text = buf;
		uint32_t n;

		if (f->kind == FIELD_INT) {
			key_print(s, o, f, key);
			continue;
		}
		if (field_address_text(s, f, key, buf, sizeof(buf)))
			n = (uint32_t)strlen(buf);
		else if (!field_text(s->image, f, key, &text, &n)) {
			key_print(s, o, f, key);
			continue;
		}
		out_char(o, ' ');
		out_padded(o, text, n, 16);
	}
}

static void print_hist(struct sink *s, struct out *o, const struct agg_view *v)
{
	struct hist_scale sc = { .zoom = opt_on(s->options, OPT_AGGZOOM) };
	uint32_t word = v->agg->func == AGG_SUM;

	for (uint32_t i = 0; i < v->nrows; i++)
		hist_scale_add(&sc, v->rows[i].words[word]);
	hist_header(o, packed_keys_width(v->agg));
	for (uint32_t i = 0; i < v->nrows; i++) {
		print_packed_keys(s, o, v->agg, v->rows[i].key);
		out_char(o, ' ');
		hist_bar(o, &sc, v->rows[i].words[word], v);
	}
}

static void print_pack(struct sink *s, struct out *o, const struct agg_view *v)
{
	uint32_t first = UINT32_MAX, last = 0;

	if (v->agg->func == AGG_LQUANTIZE) {
		first = 0;
		last = v->agg->nwords - 2;
	} else {
		for (uint32_t i = 0; i < v->nrows; i++) {
			uint32_t f, l;

			hist_range(v->agg, v->rows[i].words + 1, &f, &l);
			first = f < first ? f : first;
			last = l > last ? l : last;
		}
	}
	hist_pack_header(o, v, packed_keys_width(v->agg), first, last);
	for (uint32_t i = 0; i < v->nrows; i++) {
		print_packed_keys(s, o, v->agg, v->rows[i].key);
		hist_pack(s, o, v, v->rows[i].words, first, last);
	}
}

static void print_agg(struct sink *s, struct out *o, const struct agg_view *v,
		      const struct agg_row *r)
{
	if (agg_is_distribution(v->agg))
		return hist_print(s, o, v, r->words);
	out_char(o, ' ');
	out_signed(o, agg_row_value(v, r), 16);
}

/* aggpercpu: what each CPU counted, after the merged value. */
static void print_percpu(struct sink *s, struct out *o, const struct agg_view *v,
			 const struct agg_row *r)
{
	if (!r->percpu)
		return;
	for (uint32_t cpu = 0; cpu < r->ncpus; cpu++) {
		struct agg_row one = { .key = r->key,
				       .words = r->percpu + (size_t)cpu * v->agg->nwords };

		if (!one.words[0])
			continue;
		out_printf(o, "\n    [CPU %d]", (int)cpu);
		print_agg(s, o, v, &one);
	}
}

void aggs_print(struct sink *s, struct out *o, struct agg_view *const *aggs, uint32_t n, bool final)
{
	const struct agg_view *v = aggs[0];
	enum layout layout = n == 1 ? layout_of(s, v->agg) : LAYOUT_PLAIN;

	if (!final)
		out_char(o, '\n');
	if (!v->nrows)
		return;
	if (layout == LAYOUT_HIST)
		return print_hist(s, o, v);
	if (layout == LAYOUT_PACK)
		return print_pack(s, o, v);
	if (layout == LAYOUT_TABLE)
		return aggtable_print(s, o, v);
	for (uint32_t i = 0; i < v->nrows; i++) {
		print_keys(s, o, v->agg, v->rows[i].key);
		for (uint32_t j = 0; j < n; j++) {
			print_agg(s, o, aggs[j], &aggs[j]->rows[i]);
			print_percpu(s, o, aggs[j], &aggs[j]->rows[i]);
		}
		out_char(o, '\n');
	}
}

void aggs_format(struct sink *s, struct out *o, const struct format *f,
		 struct agg_view *const *aggs, uint32_t n)
{
	const struct agg *a = aggs[0]->agg;

	for (uint32_t i = 0; i < aggs[0]->nrows; i++) {
		struct format_args args = {
			.format = f,
			.fields = a->keys,
			.n = a->nkeys,
			.data = aggs[0]->rows[i].key,
			.aggs = aggs,
			.naggs = n,
			.row = i,
		};

		format_print(s, o, &args);
	}
}
