/* The tracer's readers of memory that a traced process writes
 * (src/load/inproc/memory/inproc_shared.h), while such a process writes. */
#include "unit.h"

#include "agent/ring.h"
#include "load/inproc/memory/inproc_shared.h"

enum { SIZE = 4096, KEYS = 16 };

struct seen {
	struct wire_ring *ring; /* what is done to it meanwhile: see `spoil` */
	uint32_t records;
	uint64_t bytes, last;
	void (*spoil)(struct seen *s);
};

static void see(void *arg, const void *record, uint32_t n)
{
	struct seen *s = arg;

	s->records++;
	s->bytes += n;
	memcpy(&s->last, record, sizeof(s->last));
	if (s->spoil)
		s->spoil(s);
}

static struct wire_ring *ring_with(uint32_t records)
{
	struct wire_ring *r = calloc(1, sizeof(*r) + SIZE);

	for (uint64_t i = 0; i < records; i++) {
		uint64_t *p = ring_reserve(r, SIZE, 8);

		assert_non_null(p);
		*p = i;
		ring_finish(p, false);
	}
	return r;
}

/* A tail that is set back makes the tracer read nothing again. */
static void test_forged_tail(void **state)
{
	struct wire_ring *r = ring_with(10);
	struct seen s = { r };
	struct shared_copy c = { 0 };
	uint64_t tail = 0;

	for (int i = 0; i < 100; i++) {
		shared_ring_take(r, SIZE, &tail, &c, see, &s);
		assert_int_equal(s.records, 10);
		r->tail = i % 2 ? 0 : ~0ull;
	}
	assert_int_equal(s.last, 9);
	assert_int_equal(tail, r->head);
	/* nor does a head that is set forward */
	s.bytes = 0;
	r->head += SIZE;
	shared_ring_take(r, SIZE, &tail, &c, see, &s);
	assert_int_equal(s.bytes, 0);
	shared_copy_fini(&c);
	free(r);
}

static void add_more(struct seen *s)
{
	ring_finish(ring_reserve(s->ring, SIZE, 8), false);
}

/* A producer that is as fast as the tracer holds it up no longer than for a ring's size. */
static void test_head_that_runs(void **state)
{
	struct wire_ring *r = ring_with(SIZE / 16);
	struct seen s = { .ring = r, .spoil = add_more };
	struct shared_copy c = { 0 };
	uint64_t tail = 0;

	shared_ring_take(r, SIZE, &tail, &c, see, &s);
	assert_int_equal(s.records, SIZE / 16);
	shared_copy_fini(&c);
	free(r);
}

static void test_forged_heads(void **state)
{
	const uint64_t heads[] = { 1, 7, SIZE + 8, ~0ull, ~7ull, 1ull << 63, 24 };
	const uint32_t words[] = { ~0u,  WIRE_RING_SIZE, WIRE_RING_PAD | WIRE_RING_SIZE,
				   SIZE, SIZE - 8,       0 };
	struct shared_copy c = { 0 };

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++) {
			struct wire_ring *r = calloc(1, sizeof(*r) + SIZE);
			struct seen s = { .ring = r };
			uint64_t tail = 0;

			for (uint32_t w = 0; w < SIZE / 4; w++)
				((uint32_t *)(void *)(r + 1))[w] = words[k];
			r->head = heads[i];
			shared_ring_take(r, SIZE, &tail, &c, see, &s);
			assert_true(s.bytes <= SIZE);
			free(r);
		}
	shared_copy_fini(&c);
}

/* A key of 12 bytes, a value of two words; wherever counts and places lead, the tracer stays in the
 * table. */
static const struct wire_map keyed = { .kind = WIRE_MAP_AGG_HASH,
				       .key_size = 12,
				       .value_size = 16,
				       .stride = 8 + 16 + 16,
				       .max_entries = KEYS,
				       .buckets = 2 * KEYS };
enum { TABLE = sizeof(struct wire_agg_table) + 2 * KEYS * 4 + KEYS * 40 };

static void see_value(void *arg, const void *key, const uint64_t *value)
{
	struct seen *s = arg;

	s->records++;
	s->last = value[1];
}

static void test_forged_table(void **state)
{
	struct shared_copy c = { 0 };

	for (int fill = 0; fill < 256; fill += 51) {
		uint8_t *table = malloc(TABLE);
		struct seen s = { 0 };

		memset(table, fill, TABLE);
		shared_agg_take(&keyed, NULL, table, &c, see_value, &s);
		assert_int_equal(s.records, fill ? KEYS : 0);
		for (int i = 0; i < TABLE && fill; i++)
			assert_true(!table[i] || i >= (int)sizeof(struct wire_agg_table));
		shared_agg_take(&keyed, NULL, table, &c, see_value, &s);
		assert_int_equal(s.records, fill ? KEYS : 0);
		free(table);
	}
	shared_copy_fini(&c);
}

/* Keys whose length claims to reach beyond the table. */
static void test_forged_reach(void **state)
{
	enum { BUCKETS = 32, STRIDE = 8 + 8 + 8 };
	uint8_t *entries = malloc(BUCKETS * STRIDE);
	const struct wire_map m = { .kind = WIRE_MAP_HASH,
				    .key_size = 8,
				    .value_size = 8,
				    .stride = STRIDE,
				    .max_entries = BUCKETS / 2,
				    .buckets = BUCKETS,
				    .base = (uintptr_t)entries };
	uint64_t key = 0xffffffffffffffff;

	memset(entries, 0xff, BUCKETS * STRIDE);
	assert_null(shared_hash_find(&m, &key)); /* in no entry that is ready */
	for (int i = 0; i < BUCKETS; i++)
		((struct wire_hash_entry *)(void *)(entries + i * STRIDE))->state = WIRE_HASH_READY;
	assert_non_null(shared_hash_find(&m, &key));
	key = 1;
	assert_null(shared_hash_find(&m, &key));
	free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged_tail),  cmocka_unit_test(test_head_that_runs),
		cmocka_unit_test(test_forged_heads), cmocka_unit_test(test_forged_table),
		cmocka_unit_test(test_forged_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
