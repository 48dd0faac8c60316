/* Aggregations of the in-process engine, over the slots of threads that write what they like. */
#include "unit.h"

#include "agent/map.h"
#include "load/inproc/inproc.h"

enum { KEYS = 64, STRIDE = 8192 };

static struct inproc_engine e;
static struct wire_area area;
static struct wire_map map;
static struct wire_process list[2];
static struct image image;
static struct agg agg;
static uint64_t rows, sum;

static int setup(void **state)
{
	agg = (struct agg){ .func = AGG_SUM, .key_size = 8, .nkeys = 1, .nwords = 2 };
	image = (struct image){ .aggs = &agg, .naggs = 1, .maps = NULL };
	map = (struct wire_map){ .kind = WIRE_MAP_AGG_HASH,
				 .key_size = 8,
				 .value_size = 16,
				 .stride = 32,
				 .max_entries = KEYS,
				 .buckets = 2 * KEYS,
				 .base = WIRE_THREAD_SPACE };
	map.gen_stride =
		map_pad8(sizeof(struct wire_agg_table) + map.buckets * 4 + KEYS * map.stride);
	assert_true(map.base + 2 * map.gen_stride <= STRIDE);
	e = (struct inproc_engine){ .area = &area,
				    .maps = &map,
				    .list = list,
				    .thread_stride = STRIDE,
				    .store_max = 1 << 20 };
	e.base.image = &image;
	e.stores = xcalloc(1, sizeof(*e.stores));
	e.threads = (uintptr_t)xcalloc(INPROC_THREADS, STRIDE);
	e.self = area_thread(&e, 0);
	for (uint32_t i = 0; i < 4; i++)
		area_thread(&e, i)->owner = 1;
	rows = sum = 0;
	return 0;
}

static int teardown(void **state)
{
	aggs_store_free(&e);
	shared_copy_fini(&e.copy);
	free((void *)e.threads);
	return 0;
}

static void add(uint32_t slot, uint64_t key, uint64_t value)
{
	struct wire_thread *t = area_thread(&e, slot);
	uint64_t words[2] = { 1, value }, *v = map_agg_lookup(&map, t, &key);

	t->gen = e.gen;
	v = map_agg_lookup(&map, t, &key);
	if (!v) {
		assert_int_equal(map_agg_update(&map, t, &key, words, MAP_ANY), 0);
		return;
	}
	v[0]++;
	v[1] += value;
}

static void row(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	rows++;
	sum += values[1];
}

static void read_all(void)
{
	rows = sum = 0;
	assert_null(aggs_read(&e, 0, row, NULL));
}

/* Threads and generations add up. */
static void test_adds_up(void **state)
{
	for (uint64_t n = 0; n < 10; n++) {
		for (uint32_t slot = 0; slot < 4; slot++)
			for (uint64_t key = 0; key < KEYS; key++)
				add(slot, key, key);
		read_all();
		assert_int_equal(rows, KEYS);
		assert_int_equal(sum, (n + 1) * 4 * (KEYS * (KEYS - 1) / 2));
	}
}

/* New keys for ever, as a process may make them, do not take all memory; what found no room is counted, and keys that are there
 * go on; one that is deleted makes room. */
static void test_store_is_bounded(void **state)
{
	uint64_t key = 0, kept, deleted = 0, last[2];

	for (int n = 0; n < 1000; n++) {
		for (int i = 0; i < KEYS; i++)
			add(1, key++, 1);
		read_all();
	}
	kept = rows;
	assert_true(e.store_bytes <= e.store_max);
	assert_in_range(kept, 1000, key - 1);
	assert_int_equal(kept + e.unstored, key);
	add(1, 0, 1);
	read_all();
	assert_int_equal(sum, kept + 1);
	assert_null(aggs_delete(&e, 0, &deleted, last));
	assert_int_equal(last[1], 2);
	add(1, key, 1);
	read_all();
	assert_int_equal(rows, kept);
	assert_int_equal(kept + e.unstored, key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_adds_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store_is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
