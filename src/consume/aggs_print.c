/* Gives the sink rows of aggregations in order: for printa() of one or several aggregations, and at
 * the end for the aggregations that were never printed. */
#define _GNU_SOURCE
#include "consume/aggs.h"

struct sorting {
	struct agg_order order;
	struct state *const *states;
	uint32_t n, sort_pos;
};

static int compare_rows(const void *x, const void *y, void *arg)
{
	const struct row *a = x, *b = y;
	const struct sorting *s = arg;
	int c = s->order.by_key ? 0 : order_values(s->order.agg, a->words, b->words);

	if (!c && s->order.agg->nkeys)
		c = order_keys(&s->order, a->key, b->key);
	return s->order.reverse ? -c : c;
}

struct agg_order aggs_order(const struct aggs *a, const struct state *st)
{
	int64_t pos = opt_num(a->options, OPT_AGGSORTKEYPOS);

	return (struct agg_order){
		.agg = st->agg,
		.image = a->image,
		.traits = st->traits,
		.by_key = opt_on(a->options, OPT_AGGSORTKEY),
		.reverse = opt_on(a->options, OPT_AGGSORTREV),
		.is_unsigned = a->dtrace,
		.key_pos = pos > 0 && pos < UINT32_MAX ? (uint32_t)pos : 0,
	};
}

void aggs_sort_rows(struct state *st, const struct agg_order *order)
{
	struct sorting s = { .order = *order };

	qsort_r(st->rows, st->nrows, sizeof(*st->rows), compare_rows, &s);
}

static void make_view(struct state *st, struct arena *arena, const struct row *rows, uint32_t n,
		      struct agg_view *ret)
{
	ret->agg = st->agg;
	ret->normal = st->normal;
	ret->nrows = n;
	ret->rows = arena_array(arena, struct agg_row, n + 1);
	for (uint32_t i = 0; i < n; i++)
		ret->rows[i] = (struct agg_row){ .key = rows[i].key,
						 .words = rows[i].words,
						 .percpu = rows[i].percpu,
						 .ncpus = st->ncpus };
}

static struct err *print_one(struct aggs *a, struct sink *s, const struct record_view *r,
			     const struct action *act, struct state *st)
{
	struct agg_order order = aggs_order(a, st);
	struct agg_view view, *views[1] = { &view };

	if (r || !s->ops->any_order) /* comparing thousands of keys takes long */
		aggs_sort_rows(st, &order);
	make_view(st, &st->arena, st->rows, st->nrows, &view);
	if (r && st->nrows)
		st->printed = true;
	return sink_do(s, printa, r, act, views, 1);
}

/* printa() of several aggregations: one row for each key of any of them. */
struct bundle {
	const uint8_t *key;      /* laid out as the keys of `fields` */
	const struct row **rows; /* one for each aggregation; NULL: it lacks the key */
};

/* Makes one layout for keys of different layouts (a string of 16 bytes in one aggregation, of 256
 * in another): text becomes a string, a number takes 8 bytes. */
static struct agg *common_layout(struct aggs *a, struct arena *arena, struct state **st, uint32_t n)
{
	struct agg *c = arena_new(arena, struct agg);
	bool same = true;

	*c = *st[0]->agg;
	for (uint32_t j = 1; j < n; j++) {
		same &= st[j]->agg->nkeys == c->nkeys && st[j]->agg->key_size == c->key_size;
		for (uint32_t k = 0; same && k < c->nkeys; k++)
			same = st[j]->agg->keys[k].kind == c->keys[k].kind &&
			       st[j]->agg->keys[k].size == c->keys[k].size &&
			       st[j]->agg->keys[k].offset == c->keys[k].offset;
	}
	if (same)
		return c;
	c->keys = arena_array(arena, struct field, c->nkeys + 1);
	c->key_size = 0;
	for (uint32_t k = 0; k < c->nkeys; k++) {
		struct field *f = &c->keys[k];
		bool equal = true;

		*f = st[0]->agg->keys[k];
		for (uint32_t j = 1; j < n; j++) {
			const struct field *g = &st[j]->agg->keys[k < st[j]->agg->nkeys ? k : 0];

			equal &= g->kind == f->kind && g->size == f->size;
		}
		if (!equal && (st[0]->traits[k] & TRAIT_TEXT)) {
			f->kind = FIELD_STRING;
			f->type = T_STRING;
			f->size = 256;
		} else if (!equal && f->kind == FIELD_INT) {
			f->size = 8;
			f->type = T_INT64;
		}
		f->offset = c->key_size;
		c->key_size += (f->size + 7) & ~7u;
	}
	return c;
}

static const uint8_t *to_layout(struct aggs *a, struct arena *arena, const struct agg *layout,
				const struct state *st, const uint8_t *key)
{
	uint8_t *to = arena_alloc(arena, layout->key_size);

	for (uint32_t k = 0; k < layout->nkeys && k < st->agg->nkeys; k++) {
		const struct field *f = &layout->keys[k], *from = &st->agg->keys[k];
		const char *text;
		uint32_t n;

		if (f->kind == from->kind && f->size == from->size) {
			memcpy(to + f->offset, key + from->offset, f->size);
		} else if (f->kind == FIELD_STRING && field_text(a->image, from, key, &text, &n)) {
			memcpy(to + f->offset, text, n < f->size - 1 ? n : f->size - 1);
		} else if (f->kind == FIELD_INT && from->kind == FIELD_INT) {
			int64_t v = field_int(from, key, st->traits[k] & TRAIT_SIGNED);

			memcpy(to + f->offset, &v, sizeof(v));
		}
	}
	return to;
}

static int compare_bundles(const void *x, const void *y, void *arg)
{
	const struct bundle *a = x, *b = y;
	const struct sorting *s = arg;
	int c = s->order.by_key && s->order.agg->nkeys ? order_keys(&s->order, a->key, b->key) : 0;

	for (uint32_t i = 0; i < s->n && !c; i++) {
		uint32_t j = (i + s->sort_pos) % s->n;

		c = order_values(s->states[j]->agg, a->rows[j]->words, b->rows[j]->words);
	}
	if (!c && !s->order.by_key && s->order.agg->nkeys)
		c = order_keys(&s->order, a->key, b->key);
	return s->order.reverse ? -c : c;
}

static struct err *print_joined(struct aggs *a, struct sink *s, const struct record_view *r,
				const struct action *act, struct state **st)
{
	uint32_t n = act->naggs, total = 0, nbundles = 0;
	int64_t pos = opt_num(a->options, OPT_AGGSORTPOS);
	struct arena arena;
	struct hash by_key = { 0 };
	struct agg *layout;
	struct bundle *bundles;
	struct agg_view *views, **list;
	struct sorting sorting;
	struct err *e;

	arena_init(&arena);
	layout = common_layout(a, &arena, st, n);
	for (uint32_t j = 0; j < n; j++)
		total += st[j]->nrows;
	bundles = arena_array(&arena, struct bundle, total + 1);
	for (uint32_t j = 0; j < n; j++) {
		for (uint32_t i = 0; i < st[j]->nrows; i++) {
			const uint8_t *key = st[j]->rows[i].key;
			uint64_t *at;

			if (key && layout->keys != st[0]->agg->keys)
				key = to_layout(a, &arena, layout, st[j], key);
			at = hash_put(&by_key, key ? key : (const uint8_t *)"",
				      key ? layout->key_size : 0, NULL);
			if (!*at) {
				*at = ++nbundles;
				bundles[*at - 1].key = key;
				bundles[*at - 1].rows = arena_array(&arena, const struct row *, n);
			}
			bundles[*at - 1].rows[j] = &st[j]->rows[i];
		}
		st[j]->printed |= st[j]->nrows != 0;
	}
	hash_fini(&by_key);
	for (uint32_t j = 0; j < n; j++) {
		struct row *zero = arena_new(&arena, struct row);

		zero->words = arena_array(&arena, int64_t, st[j]->agg->nwords);
		for (uint32_t i = 0; i < nbundles; i++)
			if (!bundles[i].rows[j])
				bundles[i].rows[j] = zero;
	}
	sorting = (struct sorting){ .order = aggs_order(a, st[0]),
				    .states = st,
				    .n = n,
				    .sort_pos = pos > 0 && pos < n ? (uint32_t)pos : 0 };
	sorting.order.agg = layout;
	qsort_r(bundles, nbundles, sizeof(*bundles), compare_bundles, &sorting);

	views = arena_array(&arena, struct agg_view, n);
	list = arena_array(&arena, struct agg_view *, n);
	for (uint32_t j = 0; j < n; j++) {
		struct row *rows = arena_array(&arena, struct row, nbundles + 1);
		struct agg *agg = arena_new(&arena, struct agg);

		for (uint32_t i = 0; i < nbundles; i++) {
			rows[i] = *bundles[i].rows[j];
			rows[i].key = bundles[i].key;
		}
		make_view(st[j], &arena, rows, nbundles, &views[j]);
		*agg = *st[j]->agg;
		agg->keys = layout->keys;
		agg->key_size = layout->key_size;
		agg->nkeys = layout->nkeys;
		views[j].agg = agg;
		list[j] = &views[j];
	}
	e = sink_do(s, printa, r, act, list, n);
	arena_fini(&arena);
	return e;
}

struct err *aggs_printa(struct aggs *a, struct sink *s, const struct record_view *r,
			const struct action *act)
{
	struct firing f = { r->head->time, r->head->cpu, r->head->probe };
	cleanup_free struct state **st = xcalloc(act->naggs + 1, sizeof(*st));
	struct err *e = NULL;

	for (uint32_t i = 0; i < act->naggs && !e; i++) {
		st[i] = &a->states[act->aggs[i]];
		e = aggs_snapshot(a, st[i], &f);
	}
	if (e || !act->naggs)
		return e;
	return act->naggs == 1 ? print_one(a, s, r, act, st[0]) : print_joined(a, s, r, act, st);
}

struct err *aggs_show(struct aggs *a, struct sink *s)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < a->image->naggs && !e; i++) {
		e = aggs_snapshot(a, &a->states[i], NULL);
		e = e ?: print_one(a, s, NULL, NULL, &a->states[i]);
	}
	return e;
}

struct err *aggs_final(struct aggs *a, struct sink *s)
{
	bool reverse = opt_on(a->options, OPT_AGGSORTREV);
	struct err *e = sink_do(s, final);

	for (uint32_t i = 0; i < a->image->naggs && !e; i++) {
		struct state *st = &a->states[reverse ? a->image->naggs - 1 - i : i];

		if (st->printed)
			continue;
		e = aggs_snapshot(a, st, NULL);
		if (!e && st->nrows)
			e = print_one(a, s, NULL, NULL, st);
	}
	return e;
}
