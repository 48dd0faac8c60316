/* Copies records, hash tables and counters out of memory that traced processes write. */
#define _GNU_SOURCE
#include "load/inproc/memory/inproc_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/map.h"
#include "agent/ring.h"

enum {
	NEAR = 64, /* slots of an index */
	FEW = 16,  /* with fewer entries than this, their index slots are cleared one by one */
	CHUNK = 1 << 16, /* bytes of entries, read at once */
	PAGE = 4096
};

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

/* Addresses [lo, hi) that are known to have pages. */
struct extent {
	const uint8_t *lo, *hi;
};

/* Returns the next page of the file at or behind p that exists (SEEK_DATA) or does not (SEEK_HOLE).
 * Where the kernel cannot say, all pages count as existing. */
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

/* Writes zeros. Leaves out pages that do not exist, unless only a few bytes are to be cleared, for
 * which a system call would cost more. */
static void wipe(const struct shared_file *f, void *p, uint64_t n)
{
	if (!f || n <= PAGE ||
	    fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (const uint8_t *)p - f->at,
		      (off_t)n))
		memset(p, 0, n);
}

/* --- rings --- */

void shared_ring_take(struct wire_ring *r, uint32_t size, uint64_t *tail, struct shared_copy *c,
		      void (*fn)(void *arg, const void *record, uint32_t n), void *arg)
{
	const uint64_t begin = *tail;
	const void *data;
	uint32_t n;

	/* bounded, because a producer may go on writing */
	while (*tail - begin < size && ring_next(r, size, tail, false, &data, &n) == RING_RECORD) {
		const void *record = copy(c, data, n);

		/* a head that a process set forward wrongly finds nothing again */
		memset((uint8_t *)data - WIRE_RING_HEAD, 0, ring_room(n));
		ring_consume(r, tail, n);
		fn(arg, record, n);
	}
}

/* --- aggregations --- */

/* Clears the index slot of entry number i. Returns false when the slot is not near the first place
 * of its hash. */
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

/* Returns the number of entries in the table, as far as their pages exist. A thread makes entries
 * one after the other. */
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

/* Copies n bytes by pread(2). A process may have removed a page from the file since is_there()
 * looked. pread(2) reads zeros for it and does not allocate it again; a load would allocate a page
 * at the tracer's cost. */
static const uint8_t *read_copy(const struct shared_file *f, const uint8_t *from, uint32_t n,
				struct shared_copy *c)
{
	if (!f)
		return copy(c, from, n);
	vec_reserve(&c->words, n / 8 + 2);
	memset(c->words.v, 0, n);
	return pread(f->fd, c->words.v, n, from - f->at) < 0 ? NULL : (uint8_t *)c->words.v;
}

void shared_agg_take(const struct wire_map *m, const struct shared_file *f, void *table,
		     struct shared_copy *c,
		     void (*fn)(void *arg, const void *key, const uint64_t *value), void *arg)
{
	struct wire_agg_table *t = table;
	uint32_t *index = (uint32_t *)(t + 1), n = count(m, f, t);
	const uint32_t at_once = m->stride < CHUNK ? CHUNK / m->stride : 1;
	uint8_t *entries = map_agg_entries(m, t);
	struct extent x = { 0 };
	bool near = n <= FEW;

	for (uint32_t i = 0, part; i < n; i += part) {
		const uint8_t *en;

		part = n - i < at_once ? n - i : at_once;
		en = read_copy(f, entries + (uint64_t)i * m->stride, part * m->stride, c);
		for (uint32_t k = 0; en && k < part; k++, en += m->stride) {
			fn(arg, en + 8,
			   (const uint64_t *)(const void *)(en + 8 + map_pad8(m->key_size)));
			near = near && clear_index(m, f, &x, index,
						   *(const uint32_t *)(const void *)en, i + k);
		}
	}
	if (!near)
		wipe(f, index, m->buckets * sizeof(*index));
	if (n)
		wipe(f, entries, (uint64_t)n * m->stride);
	x = (struct extent){ 0 };
	if (is_there(f, &x, t))
		t->n = t->full = 0;
}

static void pass_array(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg,
		       bool clear)
{
	const uint64_t at_once = m->stride < CHUNK ? CHUNK / m->stride : 1;
	uint8_t *const begin = array;
	struct extent x = { 0 };
	uint64_t i = 0, part;

	for (; i < m->max_entries; i += part) {
		uint8_t *at = begin + i * m->stride;
		const uint8_t *got;
		bool any = false;

		part = m->max_entries - i < at_once ? m->max_entries - i : at_once;
		if (!is_there(f, &x, at)) {
			uintptr_t data = (uintptr_t)seek(f, at, SEEK_DATA);

			part = (data - (uintptr_t)at + m->stride - 1) / m->stride;
			/* The page may have appeared since is_there() looked. */
			part += !part;
			continue;
		}
		got = read_copy(f, at, (uint32_t)(part * m->stride), c);
		for (uint64_t k = 0; got && k < part; k++) {
			const uint64_t *v = (const uint64_t *)(const void *)(got + k * m->stride);

			if (*v)
				fn(arg, (uint32_t)(i + k), v);
			any |= *v != 0;
		}
		if (any && clear)
			wipe(f, at, part * m->stride);
	}
}

void shared_array_take(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg)
{
	pass_array(m, f, array, c, fn, arg, true);
}

void shared_array_read(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg)
{
	pass_array(m, f, array, c, fn, arg, false);
}

/* --- the shared hash --- */

const void *shared_hash_find(const struct wire_map *m, const void *key)
{
	struct wire_hash_entry *en = map_hash_find(m, key, map_hash_key(m, key));

	return en ? map_hash_entry_value(m, en) : NULL;
}
