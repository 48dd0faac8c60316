#define _GNU_SOURCE
#include "load/inproc/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

/* --- holes --- */

/* Addresses [lo, hi) that have pages, as far as it was asked. */
struct extent {
	const uint8_t *lo, *hi;
};

/* The next page of the file at or behind p that is there (SEEK_DATA), or is not (SEEK_HOLE). All is there where the kernel
 * cannot tell. */
static const uint8_t *seek(const struct shared_file *f, const uint8_t *p, int whence)
{
	const uint8_t *last = (const uint8_t *)UINTPTR_MAX;
	off_t at;

	if (!f)
		return whence == SEEK_DATA ? p : last;
	at = lseek(f->fd, p - f->at, whence);
	if (at >= 0)
		return f->at + at;
	return whence == SEEK_DATA && errno != ENXIO ? p : last;
}

static bool is_there(const struct shared_file *f, struct extent *x, const void *addr)
{
	const uint8_t *p = addr;

	if (p >= x->lo && p < x->hi)
		return true;
	if (seek(f, p, SEEK_DATA) != p)
		return false;
	*x = (struct extent){ p, seek(f, p, SEEK_HOLE) };
	return true;
}

/* Zeroes; pages that are not there stay so. */
static void wipe(const struct shared_file *f, void *p, uint64_t n)
{
	if (!f || fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    (const uint8_t *)p - f->at, (off_t)n))
		memset(p, 0, n);
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
static bool clear_index(const struct wire_map *m, const struct shared_file *f, struct extent *x,
			uint32_t *index, uint32_t hash, uint32_t i)
{
	for (uint32_t b = 0; b < m->buckets && b <= NEAR; b++) {
		uint64_t at = (hash + b) & (m->buckets - 1);

		if (!is_there(f, x, &index[at]))
			return false;
		if (__atomic_load_n(&index[at], __ATOMIC_RELAXED) == i + 1) {
			index[at] = 0;
			return true;
		}
	}
	return m->buckets <= NEAR;
}

/* Entries that the table says it has, as far as they have pages: a thread makes them one behind the other. */
static uint32_t count(const struct wire_map *m, const struct shared_file *f,
		      struct wire_agg_table *t)
{
	const uint8_t *entries = map_agg_entries(m, t);
	struct extent x = { 0 };
	uint32_t n;

	if (!is_there(f, &x, t))
		return 0;
	n = __atomic_load_n(&t->n, __ATOMIC_ACQUIRE);
	if (n > m->max_entries)
		n = m->max_entries;
	if (!n || !is_there(f, &x, entries))
		return 0;
	return (uint64_t)(x.hi - entries) / m->stride < n
		       ? (uint32_t)((uint64_t)(x.hi - entries) / m->stride)
		       : n;
}

void shared_agg_take(const struct wire_map *m, const struct shared_file *f, void *table,
		     struct shared_copy *c,
		     void (*fn)(void *arg, const void *key, const uint64_t *value), void *arg)
{
	struct wire_agg_table *t = table;
	uint32_t *index = (uint32_t *)(t + 1), n = count(m, f, t);
	uint8_t *entries = map_agg_entries(m, t);
	struct extent x = { 0 };
	bool near = true;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *en = copy(c, entries + (uint64_t)i * m->stride, m->stride);

		fn(arg, en + 8, (const uint64_t *)(const void *)(en + 8 + map_pad8(m->key_size)));
		near = near && clear_index(m, f, &x, index, *(const uint32_t *)(const void *)en, i);
	}
	if (!near)
		wipe(f, index, m->buckets * sizeof(*index));
	for (uint32_t i = 0; i < n; i++)
		memset(entries + (uint64_t)i * m->stride, 0, m->stride);
	x = (struct extent){ 0 };
	if (is_there(f, &x, t))
		t->n = t->full = 0;
}

/* An element whose first word is there and not 0: a copy of it; it is cleared. */
static const uint64_t *take_element(const struct shared_file *f, struct extent *x, uint8_t *begin,
				    size_t size, struct shared_copy *c)
{
	size_t at = 0, end;

	vec_reserve(&c->words, size / 8);
	memset(c->words.v, 0, size);
	while (at < size && is_there(f, x, begin + at)) {
		end = (uintptr_t)x->hi - (uintptr_t)begin;
		if (end > size)
			end = size;
		memcpy((uint8_t *)c->words.v + at, begin + at, end - at);
		memset(begin + at, 0, end - at);
		at = (uintptr_t)seek(f, begin + end, SEEK_DATA) - (uintptr_t)begin;
	}
	return c->words.v;
}

void shared_array_take(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg)
{
	uint8_t *const begin = array;
	struct extent x = { 0 };
	uint64_t i = 0;

	while (i < m->max_entries) {
		uint8_t *at = begin + i * m->stride;

		if (!is_there(f, &x, at)) {
			uintptr_t data = (uintptr_t)seek(f, at, SEEK_DATA);

			i = (data - (uintptr_t)begin + m->stride - 1) / m->stride;
			continue;
		}
		if (__atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED))
			fn(arg, (uint32_t)i, take_element(f, &x, at, m->value_size, c));
		i++;
	}
}

/* --- the shared hash --- */

const void *shared_hash_find(const struct wire_map *m, const void *key)
{
	struct wire_hash_entry *en = map_hash_find(m, key, map_hash_key(m, key));

	return en ? map_hash_entry_value(m, en) : NULL;
}
