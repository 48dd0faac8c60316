/* Gives rows of an aggregation numbers that stay, and finds out what has changed in each. */
#include "view/timeline.h"

uint32_t timeline_row(struct timeline *t, const struct agg *agg, const uint8_t *key, uint32_t max,
		      bool *ret_new)
{
	const void *id = key ? (const void *)key : "";
	uint64_t *at;

	*ret_new = false;
	if (t->last.n >= max && !hash_get(&t->ids, id, agg->key_size))
		return TIMELINE_NONE;
	at = hash_put(&t->ids, id, agg->key_size, ret_new);
	if (*ret_new) {
		*at = t->last.n;
		vec_push(&t->last, xcalloc(agg->nwords, sizeof(int64_t)));
	}
	return (uint32_t)*at;
}

void timeline_changes(struct timeline *t, uint32_t number, const struct agg_view *v,
		      const struct agg_row *r,
		      void (*fn)(void *arg, uint32_t bucket, int64_t change), void *arg)
{
	const struct agg *agg = v->agg;
	int64_t *last = t->last.v[number];

	if (r->words[0] < last[0]) /* cleared since */
		memset(last, 0, agg->nwords * sizeof(*last));
	if (agg_is_distribution(agg)) {
		for (uint32_t b = 0; b + 1 < agg->nwords; b++)
			if (r->words[b + 1] != last[b + 1])
				fn(arg, b, r->words[b + 1] - last[b + 1]);
	} else if (agg->func == AGG_COUNT || agg->func == AGG_SUM) {
		uint32_t w = agg->func == AGG_SUM;

		if (r->words[w] != last[w])
			fn(arg, 0, r->words[w] - last[w]);
	} else if (memcmp(last, r->words, agg->nwords * sizeof(*last)) != 0) {
		fn(arg, 0, agg_row_value(v, r));
	}
	memcpy(last, r->words, agg->nwords * sizeof(*last));
}

void timeline_fini(struct timeline *t)
{
	for (uint32_t i = 0; i < t->last.n; i++)
		free(t->last.v[i]);
	vec_fini(&t->last);
	hash_fini(&t->ids);
	t->ids = (struct hash){ 0 };
}
