#include "load/inproc/shared.h"

#include <string.h>

#include "agent/map.h"
#include "agent/ring.h"

enum { NEAR = 64 /* places of an index */ };

void shared_copy_fini(struct shared_copy *c)
{
	vec_fini(&c->words);
}

static void *copy(struct shared_copy *c, const void *from, uint32_t n)
{
	vec_reserve(&c->words, n / 8 + 2);
	memcpy(c->words.v, from, n);
	return c->words.v;
}

/* --- rings --- */

void shared_ring_take(struct wire_ring *r, uint32_t size, uint64_t *tail, struct shared_copy *c,
		      void (*fn)(void *arg, const void *record, uint32_t n), void *arg)
{
	const uint64_t begin = *tail;
	const void *data;
	uint32_t n;

	/* a producer that goes on writing is not followed for ever */
	while (*tail - begin < size && ring_next(r, size, tail, false, &data, &n) == RING_RECORD) {
		const void *record = copy(c, data, n);

		/* a head that is set forward finds nothing again */
		memset((uint8_t *)data - WIRE_RING_HEAD, 0, ring_room(n));
		ring_consume(r, tail, n);
		fn(arg, record, n);
	}
}

/* --- aggregations --- */

/* Entry number i is not found any more. False: it is not near where it is looked for first. */
static bool clear_index(const struct wire_map *m, uint32_t *index, uint32_t hash, uint32_t i)
{
	for (uint32_t b = 0; b < m->buckets; b++) {
		uint64_t at = (hash + b) & (m->buckets - 1);

		if (__atomic_load_n(&index[at], __ATOMIC_RELAXED) == i + 1) {
			index[at] = 0;
			return true;
		}
		if (b == NEAR)
			return false;
	}
	return true;
}

void shared_agg_take(const struct wire_map *m, void *table, struct shared_copy *c,
		     void (*fn)(void *arg, const void *key, const uint64_t *value), void *arg)
{
	struct wire_agg_table *t = table;
	uint32_t *index = (uint32_t *)(t + 1);
	uint8_t *entries = map_agg_entries(m, t);
	uint32_t n = __atomic_load_n(&t->n, __ATOMIC_ACQUIRE);
	bool near = true;

	if (n > m->max_entries)
		n = m->max_entries;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *en = copy(c, entries + (uint64_t)i * m->stride, m->stride);

		fn(arg, en + 8, (const uint64_t *)(const void *)(en + 8 + map_pad8(m->key_size)));
		near = near && clear_index(m, index, *(const uint32_t *)(const void *)en, i);
	}
	if (!near)
		memset(index, 0, m->buckets * sizeof(*index));
	for (uint32_t i = 0; i < n; i++)
		memset(entries + (uint64_t)i * m->stride, 0, m->stride);
	t->n = t->full = 0;
}

const uint64_t *shared_words_take(uint64_t *words, uint32_t n, struct shared_copy *c)
{
	const uint64_t *own;

	if (!__atomic_load_n(words, __ATOMIC_RELAXED))
		return NULL;
	own = copy(c, words, n * 8);
	memset(words, 0, (size_t)n * 8);
	return own;
}

/* --- the shared hash --- */

const void *shared_hash_find(const struct wire_map *m, const void *key)
{
	struct wire_hash_entry *en = map_hash_find(m, key, map_hash_key(m, key));

	return en ? map_hash_entry_value(m, en) : NULL;
}
