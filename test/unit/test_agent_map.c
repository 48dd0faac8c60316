/* The maps of agent/map.h, in this process's memory. */
#define _GNU_SOURCE
#include "unit.h"

#include <pthread.h>

#include "agent/map.h"

enum { MAX = 300, BUCKETS = 1024 };

struct key {
	uint64_t a, b, c;
};

static struct wire_map *hash_make(uint32_t max, uint32_t buckets)
{
	struct wire_map *m = calloc(1, sizeof(*m));

	*m = (struct wire_map){ .kind = WIRE_MAP_HASH,
				.key_size = sizeof(struct key),
				.value_size = 8,
				.stride = 8 + sizeof(struct key) + 8,
				.max_entries = max,
				.buckets = buckets };
	m->base = (uintptr_t)calloc(buckets, m->stride);
	m->used = (uintptr_t)calloc(1, sizeof(uint64_t));
	return m;
}
static void hash_done(struct wire_map *m)
{
	free((void *)m->base);
	free((void *)m->used);
	free(m);
}

static struct wire_thread *thread_make(uint64_t space)
{
	struct wire_thread *t = calloc(1, WIRE_THREAD_SPACE + space);

	t->slot = 1;
	return t;
}

static void test_arrays(void **state)
{
	struct wire_thread *t = thread_make(4096);
	uint64_t cells[4] = { 0 }, v = 7, inner[2] = { 0x1000, 0 };
	struct wire_map m = { .kind = WIRE_MAP_ARRAY,
			      .key_size = 4,
			      .value_size = 8,
			      .stride = 8,
			      .max_entries = 4,
			      .base = (uintptr_t)cells };
	uint32_t k = 3;

	assert_ptr_equal(map_lookup(&m, t, &k), &cells[3]);
	assert_int_equal(map_update(&m, t, t->slot, &k, &v, MAP_ANY), 0);
	assert_int_equal(cells[3], 7);
	assert_int_equal(map_update(&m, t, t->slot, &k, &v, MAP_NOEXIST), MAP_E_EXIST);
	assert_int_equal(map_update(&m, t, t->slot, &k, &v, MAP_EXIST), 0);
	assert_int_equal(map_update(&m, t, t->slot, &k, &v, 3), MAP_E_INVAL);
	assert_int_equal(map_delete(&m, t->slot, &k), MAP_E_INVAL);
	k = 4;
	assert_null(map_lookup(&m, t, &k));
	assert_int_equal(map_update(&m, t, t->slot, &k, &v, MAP_ANY), MAP_E_2BIG);

	m.kind = WIRE_MAP_THREAD_ARRAY;
	m.base = WIRE_THREAD_SPACE;
	k = 4 + 2; /* numbered by CPU: modulo */
	assert_ptr_equal(map_lookup(&m, t, &k), (uint8_t *)t + WIRE_THREAD_SPACE + 16);

	m.kind = WIRE_MAP_AGG_ARRAY;
	m.gen_stride = 64;
	k = 1;
	assert_ptr_equal(map_lookup(&m, t, &k), (uint8_t *)t + WIRE_THREAD_SPACE + 8);
	t->gen = 1;
	assert_ptr_equal(map_lookup(&m, t, &k), (uint8_t *)t + WIRE_THREAD_SPACE + 64 + 8);

	m = (struct wire_map){
		.kind = WIRE_MAP_TABLES, .key_size = 4, .max_entries = 2, .base = (uintptr_t)inner
	};
	k = 0;
	assert_ptr_equal(map_lookup(&m, t, &k), (void *)0x1000);
	k = 1;
	assert_null(map_lookup(&m, t, &k));
	k = 2;
	assert_null(map_lookup(&m, t, &k));
	free(t);
}

static void agg_with(uint32_t key_size)
{
	uint32_t stride = 8 + (uint32_t)map_pad8(key_size) + 16;
	uint64_t gen_stride = sizeof(struct wire_agg_table) + BUCKETS * 4 + (uint64_t)MAX * stride;
	struct wire_thread *t = thread_make(2 * gen_stride);
	struct wire_map m = { .kind = WIRE_MAP_AGG_HASH,
			      .key_size = key_size,
			      .value_size = 16,
			      .stride = stride,
			      .max_entries = MAX,
			      .buckets = BUCKETS,
			      .base = WIRE_THREAD_SPACE,
			      .gen_stride = gen_stride };
	uint8_t key[256] = { 0 };
	uint64_t value[2] = { 0 }, *v;

	for (uint32_t i = 0; i < MAX; i++) {
		memcpy(key + key_size - 4, &i, 4);
		value[0] = i;
		assert_null(map_lookup(&m, t, key));
		assert_int_equal(map_update(&m, t, t->slot, key, value, MAP_EXIST), MAP_E_NOENT);
		assert_int_equal(map_update(&m, t, t->slot, key, value, MAP_NOEXIST), 0);
		assert_int_equal(map_update(&m, t, t->slot, key, value, MAP_NOEXIST), MAP_E_EXIST);
		v = map_lookup(&m, t, key);
		v[1] = i * 2;
	}
	for (uint32_t i = 0; i < MAX; i++) {
		memcpy(key + key_size - 4, &i, 4);
		v = map_lookup(&m, t, key);
		assert_non_null(v);
		assert_int_equal(v[0], i);
		assert_int_equal(v[1], i * 2);
	}
	memset(key, 0xee, sizeof(key));
	assert_int_equal(map_update(&m, t, t->slot, key, value, MAP_ANY), MAP_E_2BIG);
	assert_int_equal(map_agg_table(&m, t, 0)->full, 1);
	assert_int_equal(map_agg_table(&m, t, 0)->n, MAX);
	t->gen = 1; /* the other generation is empty */
	assert_null(map_lookup(&m, t, key));
	assert_int_equal(map_update(&m, t, t->slot, key, value, MAP_ANY), 0);
	assert_int_equal(map_agg_table(&m, t, 1)->n, 1);
	assert_int_equal(map_delete(&m, t->slot, key), MAP_E_INVAL);
	free(t);
}
static void test_agg_hash(void **state)
{
	agg_with(8);
	agg_with(4);
	agg_with(13);
	agg_with(40);
	agg_with(64);
	agg_with(100);
	agg_with(256);
}

static void test_hash(void **state)
{
	struct wire_map *m = hash_make(MAX, 512);
	struct wire_thread *t = thread_make(0);
	uint64_t at = 0, seen = 0, v = 5;

	for (uint64_t i = 0; i < MAX; i++) {
		struct key k = { i, i * i, 9 };

		assert_int_equal(map_update(m, t, t->slot, &k, &i, MAP_EXIST), MAP_E_NOENT);
		assert_int_equal(map_update(m, t, t->slot, &k, &i, MAP_NOEXIST), 0);
		assert_int_equal(map_update(m, t, t->slot, &k, &i, MAP_NOEXIST), MAP_E_EXIST);
	}
	assert_int_equal(*map_used(m), MAX);
	assert_int_equal(map_update(m, t, t->slot, &(struct key){ 1, 2, 3 }, &v, MAP_ANY),
			 MAP_E_2BIG);
	assert_int_equal(*map_used(m), MAX);
	for (uint64_t i = 0; i < MAX; i++) {
		struct key k = { i, i * i, 9 };

		assert_int_equal(*(uint64_t *)map_lookup(m, t, &k), i);
	}
	while (map_hash_next(m, &at))
		seen++;
	assert_int_equal(seen, MAX);
	/* Keys that come and go for ever do not fill it up. */
	for (uint64_t i = 0; i < 200000; i++) {
		struct key old = { i, i * i, 9 }, new = { i + MAX, (i + MAX) * (i + MAX), 9 };

		assert_int_equal(map_delete(m, t->slot, &old), 0);
		assert_int_equal(map_delete(m, t->slot, &old), MAP_E_NOENT);
		assert_null(map_lookup(m, t, &old));
		assert_int_equal(map_update(m, t, t->slot, &new, &i, MAP_ANY), 0);
	}
	assert_int_equal(*map_used(m), MAX);
	for (uint64_t i = 200000; i < 200000 + MAX; i++)
		assert_non_null(map_lookup(m, t, &(struct key){ i, i * i, 9 }));
	hash_done(m);
	free(t);
}

/* --- many threads on the same keys --- */

enum { THREADS = 4, KEYS = 64, ROUNDS = 60000 };

struct worker {
	pthread_t thread;
	struct wire_map *m;
	uint32_t slot;
	int64_t balance[KEYS]; /* keys made - keys deleted */
	uint64_t busy, torn;
};

/* Writes values. Every value is its key's first word, whichever thread wrote it. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct wire_thread *t = thread_make(0);
	uint64_t s = w->slot * 7919 + 1;

	t->slot = w->slot;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n, *v;
		struct key k;
		int64_t r;

		s = s * 6364136223846793005ull + 1442695040888963407ull;
		n = s >> 33;
		k = (struct key){ n % KEYS + 1, 5, 6 };
		switch (n / KEYS % 4) {
		case 3:
			r = map_update(w->m, t, w->slot, &k, &k.a, MAP_EXIST);
			w->busy += r == MAP_E_BUSY;
			break;
		case 0:
			r = map_update(w->m, t, w->slot, &k, &k.a, MAP_NOEXIST);
			w->balance[k.a - 1] += r == 0;
			w->busy += r == MAP_E_BUSY;
			break;
		case 1:
			r = map_delete(w->m, w->slot, &k);
			w->balance[k.a - 1] -= r == 0;
			w->busy += r == MAP_E_BUSY;
			break;
		default:
			v = map_lookup(w->m, t, &k);
			/* it may have become another's since */
			w->torn += v && (*v == 0 || *v > KEYS);
		}
	}
	free(t);
	return NULL;
}

static void test_threads(void **state)
{
	struct wire_map *m = hash_make(KEYS, 128);
	struct worker w[THREADS] = { 0 };
	uint64_t at = 0, n = 0;
	struct wire_hash_entry *e;
	int64_t there[KEYS] = { 0 };

	for (uint32_t i = 0; i < THREADS; i++) {
		w[i].m = m;
		w[i].slot = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	while ((e = map_hash_next(m, &at))) {
		uint64_t k = ((struct key *)map_hash_entry_key(e))->a;

		assert_in_range(k, 1, KEYS);
		assert_int_equal(*(uint64_t *)map_hash_entry_value(m, e), k);
		there[k - 1]++;
		n++;
	}
	assert_int_equal(n, *map_used(m));
	for (uint32_t k = 0; k < KEYS; k++) {
		int64_t sum = 0;

		for (uint32_t i = 0; i < THREADS; i++)
			sum += w[i].balance[k];
		assert_in_range(sum, 0, 1);
		assert_int_equal(sum, there[k]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(w[i].torn, 0);
	hash_done(m);
}

/* A thread died while it held a key's home. Others get "busy" in bounded time, and continue once
 * the home is freed. */
static void test_dead_holder(void **state)
{
	struct wire_map *m = hash_make(16, 32);
	struct wire_thread *t = thread_make(0);
	struct key k = { 1, 2, 3 };
	struct wire_hash_entry *home = map_hash_at(m, map_hash_key(m, &k));
	uint64_t v = 1;

	assert_true(map_hash_lock(home, 7));
	assert_int_equal(map_update(m, t, t->slot, &k, &v, MAP_ANY), MAP_E_BUSY);
	map_hash_break(home, 6); /* not its */
	assert_int_equal(map_update(m, t, t->slot, &k, &v, MAP_ANY), MAP_E_BUSY);
	map_hash_break(home, 7);
	assert_int_equal(map_update(m, t, t->slot, &k, &v, MAP_ANY), 0);
	assert_true(map_hash_lock(home, t->slot)); /* left by itself, by longjmp() */
	assert_int_equal(map_delete(m, t->slot, &k), 0);
	hash_done(m);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays),      cmocka_unit_test(test_agg_hash),
		cmocka_unit_test(test_hash),        cmocka_unit_test(test_threads),
		cmocka_unit_test(test_dead_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
