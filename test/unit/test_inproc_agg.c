/* Aggregations of the in-process engine, with threads that write anything into their slots. */
#define _GNU_SOURCE
#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/map.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/state/area.h"

enum { KEYS = 64, MANY_KEYS = 1 << 16, PAGE = 4096 };

static struct inproc_engine e;
static struct wire_area area;
static struct wire_map map;
static struct wire_process list[2];
static struct image image;
static struct agg agg;
static uint64_t rows, sum;

static int setup_keys(uint32_t keys)
{
	uint64_t size;

	agg = (struct agg){ .func = AGG_SUM, .key_size = 8, .nkeys = 1, .nwords = 2 };
	image = (struct image){ .aggs = &agg, .naggs = 1, .maps = NULL };
	map = (struct wire_map){ .kind = WIRE_MAP_AGG_HASH,
				 .key_size = 8,
				 .value_size = 16,
				 .stride = 32,
				 .max_entries = keys,
				 .buckets = 2 * keys,
				 .base = WIRE_THREAD_SPACE };
	map.gen_stride =
		map_pad8(sizeof(struct wire_agg_table) + map.buckets * 4 + keys * map.stride);
	e = (struct inproc_engine){
		.area = &area,
		.maps = &map,
		.list = list,
		.room.nthreads = INPROC_THREADS,
		.room.thread_stride = (map.base + 2 * map.gen_stride + PAGE - 1) / PAGE * PAGE,
		.aggs.bytes_max = 1 << 20
	};
	e.base.image = &image;
	e.aggs.stores = xcalloc(1, sizeof(*e.aggs.stores));
	size = INPROC_THREADS * e.room.thread_stride;
	e.files.shared.fd = file_new("shared", size);
	assert_true(e.files.shared.fd >= 0);
	e.common = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			e.files.shared.fd, 0);
	assert_true(e.common != MAP_FAILED);
	e.room.threads = (uintptr_t)e.common;
	/* the tracer's own slot is not in the file */
	assert_true(mmap(e.common, e.room.thread_stride, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == e.common);
	e.self = area_thread(&e, 0);
	for (uint32_t i = 0; i < 4; i++)
		area_thread(&e, i)->owner = 1;
	rows = sum = 0;
	return 0;
}

static int setup(void **state)
{
	return setup_keys(KEYS);
}

static int setup_many(void **state)
{
	return setup_keys(MANY_KEYS);
}

static int teardown(void **state)
{
	aggs_store_free(&e);
	shared_copy_fini(&e.aggs.copy);
	munmap(e.common, INPROC_THREADS * e.room.thread_stride);
	close(e.files.shared.fd);
	return 0;
}

static void add(uint32_t slot, uint64_t key, uint64_t value)
{
	struct wire_thread *t = area_thread(&e, slot);
	uint64_t words[2] = { 1, value }, *v = map_agg_lookup(&map, t, &key);

	t->gen = WIRE_GEN_RUNS | e.aggs.gen;
	v = map_agg_lookup(&map, t, &key);
	if (!v) {
		assert_int_equal(map_agg_update(&map, t, &key, words, MAP_ANY), 0);
		t->gen = 0;
		return;
	}
	v[0]++;
	v[1] += value;
	t->gen = 0;
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

/* After the detach, thousands of records may read an aggregation: the slots are looked through
 * twice, and again when the tracer has run END. */
static void test_end(void **state)
{
	uint32_t gen;

	area.closing = 1;
	add(0, 1, 5);
	read_all();
	assert_int_equal(sum, 5);
	read_all();
	gen = e.aggs.gen;
	add(0, 1, 7);
	for (int i = 0; i < 1000; i++) {
		read_all();
		assert_int_equal(e.aggs.gen, gen); /* no slot is looked at */
	}
	assert_int_equal(sum, 5);
	e.aggs.end_flips = 0; /* as when END has run */
	read_all();
	read_all();
	assert_int_equal(sum, 12);
	area.closing = 0;
}

/* A process may make new keys without end. They do not take all memory. Keys without room are
 * counted, known keys still count, and a deleted key makes room. */
static void test_store_is_bounded(void **state)
{
	uint64_t key = 0, kept, deleted = 0, last[2];

	for (int n = 0; n < 1000; n++) {
		for (int i = 0; i < KEYS; i++)
			add(1, key++, 1);
		read_all();
	}
	kept = rows;
	assert_true(e.aggs.bytes <= e.aggs.bytes_max);
	assert_in_range(kept, 1000, key - 1);
	assert_int_equal(kept + e.aggs.unstored, key);
	add(1, 0, 1);
	read_all();
	assert_int_equal(sum, kept + 1);
	assert_null(aggs_delete(&e, 0, &deleted, last));
	assert_int_equal(last[1], 2);
	add(1, key, 1);
	read_all();
	assert_int_equal(rows, kept);
	assert_int_equal(kept + e.aggs.unstored, key);
}

static uint64_t resident(void)
{
	struct stat st;

	assert_int_equal(fstat(e.files.shared.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Unused slots claim that their tables are full. Memory that no process has written takes no memory
 * when it is read. */
static void test_holes_stay(void **state)
{
	enum { FIRST = 4, SLOTS = 16 };
	uint64_t before;

	read_all();
	for (uint32_t i = FIRST; i < FIRST + SLOTS; i++)
		for (uint64_t gen = 0; gen < 2; gen++) {
			struct wire_thread *t = area_thread(&e, i);
			struct wire_agg_table *a = map_agg_table(&map, t, gen);
			uint8_t *entries = map_agg_entries(&map, a);

			t->owner = 2;
			a->n = ~0u;
			for (uint32_t k = 0; i % 2 && k < PAGE / map.stride;
			     k++) /* index: nothing */
				*(uint32_t *)(void *)(entries + k * map.stride) = k * 1024;
		}
	before = resident();
	for (int n = 0; n < 3; n++) {
		read_all();
		assert_true(resident() <= before);
		for (uint32_t i = FIRST; i < FIRST + SLOTS; i++)
			for (uint64_t gen = 0; gen < 2; gen++)
				map_agg_table(&map, area_thread(&e, i), gen)->n = ~0u;
	}
}

struct taker {
	struct shared_file file;
	uint8_t *table;
	uint64_t entries;
};

/* Takes the table's pages out of the file behind the reader's back. */
static void take_away(void *arg, const void *key, const uint64_t *value)
{
	struct taker *t = arg;

	if (!t->entries++)
		assert_int_equal(fallocate(t->file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					   t->table - t->file.at, (off_t)map.gen_stride),
				 0);
}

/* A process that takes pages away between the tracer's look and its reading does not have them put
 * back for it. */
static void test_taken_away(void **state)
{
	enum { SLOT = 5 };
	struct taker t = { { e.files.shared.fd, (const uint8_t *)e.common } };
	uint64_t without = resident();

	for (uint64_t key = 0; key < 20000; key++)
		add(SLOT, key, key);
	assert_true(resident() > without + 20000ull * map.stride);
	t.table = (uint8_t *)map_agg_table(&map, area_thread(&e, SLOT), e.aggs.gen);
	shared_agg_take(&map, &t.file, t.table, &e.aggs.copy, take_away, &t);
	assert_true(t.entries);
	assert_in_range(resident(), without, without + 8 * PAGE);
}

/* Tables with untouched pages between touched ones. */
static void test_sparse_adds_up(void **state)
{
	for (uint64_t n = 0; n < 6; n++) {
		for (uint32_t slot = 0; slot < 4; slot++)
			for (uint64_t key = 0; key < 1000; key++)
				add(slot, key, key);
		read_all();
		assert_int_equal(rows, 1000);
		assert_int_equal(sum, (n + 1) * 4 * (1000 * 999 / 2));
	}
}

enum { ELEMENTS = 4000 };

struct taken {
	uint32_t n, index[4];
	uint64_t words[4][8];
};

static void take_words(void *arg, uint32_t index, const uint64_t *words)
{
	struct taken *t = arg;

	assert_true(t->n < 4);
	t->index[t->n] = index;
	memcpy(t->words[t->n++], words, sizeof(t->words[0]));
}

/* The elements of an array that were counted in, of which no page is touched that was not. */
static void test_array_with_holes(void **state)
{
	const struct shared_file f = { e.files.shared.fd, (const uint8_t *)e.common };
	const struct wire_map m = { .value_size = 56, .stride = 56, .max_entries = ELEMENTS };
	uint8_t *array = (uint8_t *)area_thread(&e, 5);
	/* The second lies across the end of the first page, and the page with its last words is not
	 * touched. */
	const uint32_t at[] = { 2, 73, 2000, ELEMENTS - 1 };
	struct taken t = { 0 };
	uint64_t before = resident();

	shared_array_take(&m, &f, array, &e.aggs.copy, take_words, &t);
	assert_int_equal(t.n, 0);
	assert_int_equal(resident(), before);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t *words = (uint64_t *)(void *)(array + at[i] * m.stride);

		words[0] = i + 1;
		if (i != 1)
			words[6] = 10 * i;
	}
	/* Counters stay as they are. */
	shared_array_read(&m, &f, array, &e.aggs.copy, take_words, &t);
	assert_int_equal(t.n, 4);
	t.n = 0;
	before = resident();
	shared_array_take(&m, &f, array, &e.aggs.copy, take_words, &t);
	assert_true(resident() <= before);
	assert_int_equal(t.n, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(t.index[i], at[i]);
		assert_int_equal(t.words[i][0], i + 1);
		assert_int_equal(t.words[i][6], i == 1 ? 0 : 10 * i);
	}
	t.n = 0;
	shared_array_take(&m, &f, array, &e.aggs.copy, take_words, &t);
	assert_int_equal(t.n, 0);
}

/* An element across pages of which only the first and the third were touched. */
static void test_words_with_a_hole(void **state)
{
	const struct shared_file f = { e.files.shared.fd, (const uint8_t *)e.common };
	const struct wire_map m = { .value_size = 2048 * 8, .stride = 2048 * 8, .max_entries = 1 };
	uint64_t *words = (uint64_t *)area_thread(&e, 5), before;
	struct taken t = { 0 };

	words[0] = 1;
	words[1024] = 2;
	before = resident();
	shared_array_take(&m, &f, words, &e.aggs.copy, take_words, &t);
	assert_int_equal(t.n, 1);
	for (int i = 0; i < 2048; i++)
		assert_int_equal(e.aggs.copy.words.v[i], i == 0 ? 1 : i == 1024 ? 2 : 0);
	assert_true(resident() <= before);
	assert_int_equal(words[0] + words[1024], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_adds_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holes_stay, setup_many, teardown),
		cmocka_unit_test_setup_teardown(test_sparse_adds_up, setup_many, teardown),
		cmocka_unit_test_setup_teardown(test_array_with_holes, setup_many, teardown),
		cmocka_unit_test_setup_teardown(test_taken_away, setup_many, teardown),
		cmocka_unit_test_setup_teardown(test_words_with_a_hole, setup_many, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
