/* Maps of every kind (wire/inproc.h): lookup, update, delete, with the kernel's flags and error
 * numbers.
 *
 * In: a struct wire_map, the calling thread's slot, checked addresses of key and value. Out: the
 * results of the kernel's helpers: 0, -errno, an address. Always true: every wait has an end. A
 * thread's own maps have one writer and no lock. In the shared hash each key has a home: the first
 * entry where it may stand. A thread that adds or deletes a key holds the key's home meanwhile, so
 * each key is there once. Readers take no lock. They look at as many entries as the home's reach
 * covers.
 */
#ifndef DESCRY_AGENT_MAP_H
#define DESCRY_AGENT_MAP_H

#include "agent/memory.h"
#include "wire/inproc.h"

enum { MAP_ANY, MAP_NOEXIST, MAP_EXIST, MAP_FLAGS };
enum { MAP_E_NOENT = -2, MAP_E_2BIG = -7, MAP_E_BUSY = -16, MAP_E_EXIST = -17, MAP_E_INVAL = -22 };
enum {
	MAP_HASH_REACH = 1024, /* entries from home that a key may stand in */
	MAP_HASH_SPINS = 2000,
};

static inline uint64_t map_pad8(uint64_t n)
{
	return (n + 7) & ~7ull;
}
static inline uint64_t map_hash_key(const struct wire_map *m, const void *key)
{
	return mem_hash(key, m->key_size);
}

/* --- aggregations by key: a thread's own --- */

static inline struct wire_agg_table *map_agg_table(const struct wire_map *m, struct wire_thread *t,
						   uint64_t gen)
{
	return (struct wire_agg_table *)((uintptr_t)t + m->base + gen * m->gen_stride);
}
static inline uint8_t *map_agg_entries(const struct wire_map *m, struct wire_agg_table *a)
{
	return (uint8_t *)((uint32_t *)(a + 1) + m->buckets);
}

/* Returns the address of the key's value, NULL: it is absent. *ret_at is the index word that has
 * the key or can take it, NULL: none is free. */
static inline void *map_agg_find(const struct wire_map *m, struct wire_agg_table *a,
				 const void *key, uint32_t hash, uint32_t **ret_at)
{
	uint32_t *index = (uint32_t *)(a + 1), mask = (uint32_t)m->buckets - 1, e;
	uint8_t *entries = (uint8_t *)(index + m->buckets), *en;

	if (m->key_size == 8) {
		uint64_t k = *(const any64 *)key;

		for (uint32_t i = 0; i <= mask; i++) {
			*ret_at = &index[(hash + i) & mask];
			e = **ret_at;
			if (!e)
				return NULL;
			en = entries + (uint64_t)(e - 1) * m->stride;
			if (e <= m->max_entries && *(uint64_t *)(en + 8) == k)
				return en + 16;
		}
		*ret_at = NULL;
		return NULL;
	}
	for (uint32_t i = 0; i <= mask; i++) {
		*ret_at = &index[(hash + i) & mask];
		e = **ret_at;
		if (!e)
			return NULL;
		en = entries + (uint64_t)(e - 1) * m->stride;
		if (e <= m->max_entries && *(uint32_t *)en == hash &&
		    mem_same(en + 8, key, m->key_size))
			return en + 8 + map_pad8(m->key_size);
	}
	*ret_at = NULL;
	return NULL;
}

static inline void *map_agg_lookup(const struct wire_map *m, struct wire_thread *t, const void *key)
{
	uint32_t *at;

	return map_agg_find(m, map_agg_table(m, t, t->gen & 1), key, (uint32_t)map_hash_key(m, key),
			    &at);
}

static inline int64_t map_agg_update(const struct wire_map *m, struct wire_thread *t,
				     const void *key, const void *value, uint64_t flags)
{
	struct wire_agg_table *a = map_agg_table(m, t, t->gen & 1);
	uint32_t hash = (uint32_t)map_hash_key(m, key), *at, n = a->n;
	void *v = map_agg_find(m, a, key, hash, &at);
	uint8_t *en;

	if (v && flags == MAP_NOEXIST)
		return MAP_E_EXIST;
	if (!v && flags == MAP_EXIST)
		return MAP_E_NOENT;
	if (v) {
		mem_copy(v, value, m->value_size);
		return 0;
	}
	if (!at || n >= m->max_entries) {
		a->full++;
		return MAP_E_2BIG;
	}
	en = map_agg_entries(m, a) + (uint64_t)n * m->stride;
	*(uint32_t *)en = hash;
	mem_copy(en + 8, key, m->key_size);
	mem_copy(en + 8 + map_pad8(m->key_size), value, m->value_size);
	__atomic_store_n(&a->n, n + 1, __ATOMIC_RELEASE);
	*at = n + 1;
	return 0;
}

/* --- the shared hash --- */

static inline uint64_t *map_used(const struct wire_map *m)
{
	return (uint64_t *)(uintptr_t)m->used;
}
static inline struct wire_hash_entry *map_hash_at(const struct wire_map *m, uint64_t i)
{
	return (struct wire_hash_entry *)(m->base + (i & (m->buckets - 1)) * m->stride);
}
static inline uint8_t *map_hash_entry_key(struct wire_hash_entry *e)
{
	return (uint8_t *)(e + 1);
}
static inline void *map_hash_entry_value(const struct wire_map *m, struct wire_hash_entry *e)
{
	return map_hash_entry_key(e) + map_pad8(m->key_size);
}

static inline struct wire_hash_entry *map_hash_find(const struct wire_map *m, const void *key,
						    uint64_t home)
{
	uint32_t reach = __atomic_load_n(&map_hash_at(m, home)->owner, __ATOMIC_ACQUIRE) >> 16;

	for (uint32_t i = 0; i < reach; i++) {
		struct wire_hash_entry *e = map_hash_at(m, home + i);

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == WIRE_HASH_READY &&
		    mem_same(map_hash_entry_key(e), key, m->key_size))
			return e;
	}
	return NULL;
}

static inline bool map_hash_lock(struct wire_hash_entry *home, uint32_t slot)
{
	for (int i = 0; i < MAP_HASH_SPINS; i++) {
		uint32_t v = __atomic_load_n(&home->owner, __ATOMIC_RELAXED);

		/* this thread itself holds it: an abandoned firing does (nested firings do not
		 * run) */
		if ((!(v & 0xffff) || (v & 0xffff) == slot + 1) &&
		    __atomic_compare_exchange_n(&home->owner, &v, (v & 0xffff0000u) | (slot + 1),
						false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__asm__ volatile("pause");
	}
	return false;
}
static inline void map_hash_unlock(struct wire_hash_entry *home)
{
	/* no other thread writes it while it is held */
	__atomic_store_n(&home->owner,
			 __atomic_load_n(&home->owner, __ATOMIC_RELAXED) & 0xffff0000u,
			 __ATOMIC_RELEASE);
}

/* Takes a home from a thread that has ended. Entries that it was writing stay BUSY: they are lost,
 * but never read. */
static inline void map_hash_break(struct wire_hash_entry *home, uint32_t slot)
{
	uint32_t v = __atomic_load_n(&home->owner, __ATOMIC_RELAXED);

	if ((v & 0xffff) == slot + 1)
		__atomic_compare_exchange_n(&home->owner, &v, v & 0xffff0000u, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static inline int64_t map_hash_add(const struct wire_map *m, struct wire_hash_entry *home,
				   uint64_t at, const void *key, const void *value)
{
	uint32_t reach = m->buckets < MAP_HASH_REACH ? (uint32_t)m->buckets : MAP_HASH_REACH, state,
		 v;

	if (__atomic_fetch_add(map_used(m), 1, __ATOMIC_RELAXED) >= m->max_entries)
		goto full;
	for (uint32_t i = 0; i < reach; i++) {
		struct wire_hash_entry *e = map_hash_at(m, at + i);

		state = __atomic_load_n(&e->state, __ATOMIC_RELAXED);
		if ((state != WIRE_HASH_EMPTY && state != WIRE_HASH_DELETED) ||
		    !__atomic_compare_exchange_n(&e->state, &state, WIRE_HASH_BUSY, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		mem_copy(map_hash_entry_key(e), key, m->key_size);
		mem_copy(map_hash_entry_value(m, e), value, m->value_size);
		v = __atomic_load_n(&home->owner,
				    /* this thread holds it, so no other changes it */
				    __ATOMIC_RELAXED);
		if (v >> 16 < i + 1)
			__atomic_store_n(&home->owner, (v & 0xffff) | (i + 1) << 16,
					 __ATOMIC_RELEASE);
		__atomic_store_n(&e->state, WIRE_HASH_READY, __ATOMIC_RELEASE);
		return 0;
	}
full:
	__atomic_fetch_sub(map_used(m), 1, __ATOMIC_RELAXED);
	return MAP_E_2BIG;
}

static inline int64_t map_hash_update(const struct wire_map *m, uint32_t slot, const void *key,
				      const void *value, uint64_t flags)
{
	uint64_t at = map_hash_key(m, key);
	struct wire_hash_entry *home = map_hash_at(m, at), *e;
	int64_t r;

	if (!map_hash_lock(home, slot))
		return MAP_E_BUSY;
	e = map_hash_find(m, key, at);
	if (e && flags == MAP_NOEXIST) {
		r = MAP_E_EXIST;
	} else if (e) {
		mem_copy(map_hash_entry_value(m, e), value, m->value_size);
		r = 0;
	} else {
		r = flags == MAP_EXIST ? MAP_E_NOENT : map_hash_add(m, home, at, key, value);
	}
	map_hash_unlock(home);
	return r;
}

static inline int64_t map_hash_delete(const struct wire_map *m, uint32_t slot, const void *key)
{
	uint64_t at = map_hash_key(m, key);
	struct wire_hash_entry *home = map_hash_at(m, at), *e;

	if (!map_hash_find(m, key, at))
		return MAP_E_NOENT;
	if (!map_hash_lock(home, slot))
		return MAP_E_BUSY;
	e = map_hash_find(m, key, at);
	if (e) {
		__atomic_store_n(&e->state, WIRE_HASH_DELETED, __ATOMIC_RELEASE);
		__atomic_fetch_sub(map_used(m), 1, __ATOMIC_RELAXED);
	}
	map_hash_unlock(home);
	return e ? 0 : MAP_E_NOENT;
}

/* Returns the entries from number *at on, one in each call, for the tracer. NULL: no more. */
static inline struct wire_hash_entry *map_hash_next(const struct wire_map *m, uint64_t *at)
{
	while (*at < m->buckets) {
		struct wire_hash_entry *e = map_hash_at(m, (*at)++);

		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == WIRE_HASH_READY)
			return e;
	}
	return NULL;
}

/* --- any kind --- */

/* Returns the value's address, NULL: it is absent. */
static inline void *map_lookup(const struct wire_map *m, struct wire_thread *t, const void *key)
{
	uint64_t i, at;
	struct wire_hash_entry *e;

	switch (m->kind) {
	case WIRE_MAP_ARRAY:
		i = *(const any32 *)key;
		return i < m->max_entries ? (void *)(uintptr_t)(m->base + i * m->stride) : NULL;
	case WIRE_MAP_THREAD_ARRAY:
		i = *(const any32 *)key;
		if (i >= m->max_entries) /* numbered by CPU */
			i = m->max_entries ? i % m->max_entries : 0;
		return (void *)((uintptr_t)t + m->base + i * m->stride);
	case WIRE_MAP_AGG_ARRAY:
		i = *(const any32 *)key;
		if (i >= m->max_entries)
			return NULL;
		return (void *)((uintptr_t)t + m->base + (t->gen & 1) * m->gen_stride +
				i * m->stride);
	case WIRE_MAP_AGG_HASH: return map_agg_lookup(m, t, key);
	case WIRE_MAP_HASH:
		at = map_hash_key(m, key);
		e = map_hash_find(m, key, at);
		return e ? map_hash_entry_value(m, e) : NULL;
	case WIRE_MAP_TABLES:
		i = *(const any32 *)key;
		if (i >= m->max_entries)
			return NULL;
		return (void *)(uintptr_t)__atomic_load_n((uint64_t *)(uintptr_t)m->base + i,
							  __ATOMIC_ACQUIRE);
	}
	return NULL;
}

/* slot: t's number, needed for WIRE_MAP_HASH only. Not wire_thread.slot, because other processes
 * may write it. */
static inline int64_t map_update(const struct wire_map *m, struct wire_thread *t, uint32_t slot,
				 const void *key, const void *value, uint64_t flags)
{
	void *v;

	if (flags >= MAP_FLAGS)
		return MAP_E_INVAL;
	switch (m->kind) {
	case WIRE_MAP_AGG_HASH: return map_agg_update(m, t, key, value, flags);
	case WIRE_MAP_HASH: return map_hash_update(m, slot, key, value, flags);
	case WIRE_MAP_ARRAY:
	case WIRE_MAP_THREAD_ARRAY:
	case WIRE_MAP_AGG_ARRAY:
		v = map_lookup(m, t, key);
		if (!v)
			return MAP_E_2BIG;
		if (flags == MAP_NOEXIST)
			return MAP_E_EXIST;
		mem_copy(v, value, m->value_size);
		return 0;
	}
	return MAP_E_INVAL;
}

static inline int64_t map_delete(const struct wire_map *m, uint32_t slot, const void *key)
{
	return m->kind == WIRE_MAP_HASH ? map_hash_delete(m, slot, key) : MAP_E_INVAL;
}

#endif
