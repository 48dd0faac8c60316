/* The tables of an allocation report: live blocks, sets of blocks, size classes, shared lines of
 * the cache. */
#include "unit.h"

#include "base/mem.h"
#include "memory/alloc/block_set.h"
#include "memory/alloc/live_blocks.h"
#include "memory/alloc/mapped_ranges.h"
#include "memory/alloc/shared_lines.h"
#include "memory/alloc/size_classes.h"
#include "random_number.h"

static void live(void **unused)
{
	static uint64_t size[512];
	struct live l = { 0 };
	uint32_t n = 0;

	(void)unused;
	for (int i = 0; i < 200000; i++) {
		uint32_t k = (uint32_t)(random_number() % 512);
		struct live_block b = { .addr = 0x1000 + k * 16ull,
					.size = 1 + random_number() % 99 };
		struct live_block old = { 0 };

		if (random_number() & 1) {
			assert_int_equal(live_put(&l, &b, &old), !size[k]);
			assert_int_equal(old.size, size[k]);
			n += !size[k];
			size[k] = b.size;
		} else {
			assert_int_equal(live_take(&l, b.addr, &old), size[k] != 0);
			assert_int_equal(old.size, size[k]);
			n -= size[k] != 0;
			size[k] = 0;
		}
		assert_int_equal(l.n, n);
	}
	live_fini(&l);
}

/* The set of blocks is what a plain list is. */
static void sets(void **state_)
{
	enum { SPAN = 40000 };
	static bool in[SPAN];
	struct block_set s = { 0 };

	random_state = 5;
	for (uint32_t i = 0; i < 1000000; i++) {
		uint32_t k = (uint32_t)random_number() % SPAN;
		/* neighbours, and blocks that are pages apart */
		uint64_t addr = k % 2 ? 0x7f0000000000 + k * 8ull : (k + 1) * 40960ull;

		if (block_set_growth(&s))
			assert_int_equal(block_set_growth(&s),
					 3ull * s.cap * (sizeof(*s.pages) + sizeof(*s.bits)));
		block_set_fetch(&s, addr);
		if (random_number() & 1) {
			assert_int_equal(block_set_put(&s, addr), !in[k]);
			in[k] = true;
		} else {
			assert_int_equal(block_set_take(&s, addr), in[k]);
			in[k] = false;
		}
	}
	assert_in_range(s.n, SPAN / 2, SPAN);
	assert_false(block_set_take(&s, 0x123456789000));
	block_set_fini(&s);
	assert_int_equal(s.n, 0);
}

/* What malloc_usable_size(3) says of glibc 2.36, jemalloc 5.3 and mimalloc 2.0.9. */
static void classes(void **unused)
{
	static const uint64_t want[][1 + CLASSES_N] = {
		{ 1, 32, 8, 8 },
		{ 24, 32, 32, 32 },
		{ 25, 48, 32, 32 },
		{ 57, 80, 64, 64 },
		{ 129, 144, 160, 160 },
		{ 1000, 1008, 1024, 1024 },
		{ 1025, 1040, 1280, 1280 },
		{ 4097, 4112, 5120, 5120 },
		{ 65537, 65552, 81920, 81920 },
		{ 200000, 200704, 229376, 262144 },
	};
	struct size_classes_table t;

	(void)unused;
	size_classes_init(&t);
	for (uint32_t i = 0; i < ARRAY_SIZE(want); i++)
		for (int c = 0; c < CLASSES_N; c++)
			assert_int_equal(size_classes_get(&t, c, want[i][0]), want[i][1 + c]);
	for (int c = 0; c < CLASSES_N; c++) {
		for (uint64_t size = 0; size < 300000; size++)
			assert_true(size_classes_get(&t, c, size) >= size);
		assert_int_equal(size_classes_bytes(c, UINT64_MAX), UINT64_MAX);
	}
}

/* Against an array of all lines. */
static void lines(void **unused)
{
	enum { BLOCKS = 200, ROOM = 4096, LINES = ROOM / 64 + 3, MANY = UINT32_MAX };
	struct {
		uint64_t addr, size;
	} v[BLOCKS] = { 0 };
	struct {
		uint32_t thread, blocks;
	} model[LINES] = { 0 };
	struct shared_lines l = { 0 };

	(void)unused;
	for (int i = 0; i < 20000; i++) {
		uint32_t k = (uint32_t)(random_number() % BLOCKS);
		uint32_t thread = 1 + (uint32_t)(random_number() % 3);
		bool leaves = v[k].addr, want = false;
		uint64_t first, last;

		if (!leaves) {
			v[k].addr = 1 + random_number() % ROOM;
			v[k].size = random_number() % 150;
		}
		first = v[k].addr / 64;
		last = (v[k].addr + (v[k].size ? v[k].size - 1 : 0)) / 64;
		for (uint64_t at = first;; at = last) {
			if (leaves) {
				model[at].blocks--;
			} else {
				bool other = model[at].blocks && model[at].thread != thread;

				want |= other;
				model[at].thread = other ? MANY : thread;
				model[at].blocks++;
			}
			if (at == last)
				break;
		}
		if (leaves) {
			shared_lines_remove(&l, v[k].addr, v[k].size);
			v[k].addr = 0;
		} else {
			assert_int_equal(shared_lines_add(&l, v[k].addr, v[k].size, thread), want);
		}
	}
	for (uint32_t k = 0; k < BLOCKS; k++)
		if (v[k].addr)
			shared_lines_remove(&l, v[k].addr, v[k].size);
	assert_int_equal(l.n, 0);
	shared_lines_fini(&l);
}

static void add_bytes(void *arg, const struct mapped_range *r)
{
	*(uint64_t *)arg += r->end - r->start;
}

static uint64_t sum_of(const struct mapped_ranges *m)
{
	uint64_t sum = 0;

	mapped_ranges_each(m, add_bytes, &sum);
	return sum;
}

static void check_order(void *arg, const struct mapped_range *r)
{
	uint64_t *end = arg;

	assert_true(*end <= r->start && r->start < r->end);
	*end = r->end;
}

static void is_sorted(const struct mapped_ranges *m)
{
	uint64_t end = 0;

	mapped_ranges_each(m, check_order, &end);
}

static void ranges(void **unused)
{
	enum { UNITS = 200, MANY = 20000 };
	static uint8_t kinds[UNITS];
	struct mapped_ranges m = { 0 };

	(void)unused;
	for (int i = 0; i < 100000; i++) {
		uint64_t at = random_number() % UNITS, n = random_number() % 20;
		uint8_t kind = (uint8_t)(random_number() % MAPPED_N);
		uint64_t want[MAPPED_N] = { 0 };

		n = n < UNITS - at ? n : UNITS - at;
		memset(kinds + at, kind, n);
		if (kind)
			mapped_ranges_put(&m, at * 4096, n * 4096, kind);
		else
			mapped_ranges_take(&m, at * 4096, n * 4096);
		for (int k = 0; k < UNITS; k++)
			want[kinds[k]] += 4096;
		for (int k = 1; k < MAPPED_N; k++)
			assert_int_equal(m.bytes[k], want[k]);
		is_sorted(&m);
	}
	mapped_ranges_take(&m, 0, UINT64_MAX);
	assert_int_equal(m.n + m.blocks.n, 0);
	/* many, in any order, and parts of them again */
	for (uint32_t i = 0; i < MANY; i++)
		mapped_ranges_put(&m, (i * 7919ull % MANY + 1) * 16384, 8192, 1);
	assert_int_equal(m.n, MANY);
	is_sorted(&m);
	for (uint32_t i = 0; i < MANY; i += 2)
		mapped_ranges_take(&m, (i * 7919ull % MANY + 1) * 16384 + 4096, 16384);
	assert_int_equal(m.bytes[1], sum_of(&m));
	is_sorted(&m);
	/* a hostile recording's */
	mapped_ranges_put(&m, 4096, UINT64_MAX, 1);
	mapped_ranges_put(&m, UINT64_MAX - 10, 100, 2);
	mapped_ranges_take(&m, 0, UINT64_MAX);
	mapped_ranges_take(&m, UINT64_MAX, 100);
	assert_int_equal(m.bytes[1] + m.bytes[2] + m.bytes[3], 0);
	/* holes from above make a range for each, and each is in front of all others */
	mapped_ranges_put(&m, 0, 1ull << 44, 1);
	for (uint64_t i = 1; i < MAPPED_MAX + 10; i++)
		mapped_ranges_take(&m, (1ull << 44) - i * 32, 16);
	assert_int_equal(m.n, MAPPED_MAX);
	assert_int_equal(m.left_out, 10);
	assert_int_equal(m.bytes[1], sum_of(&m));
	mapped_ranges_take(&m, 0, UINT64_MAX);
	m.left_out = 0;
	for (uint64_t i = 0; i < MAPPED_MAX + 10; i++)
		mapped_ranges_put(&m, i * 8192, 4096, 1);
	assert_int_equal(m.n, MAPPED_MAX);
	assert_int_equal(m.left_out, 10);
	assert_int_equal(m.bytes[1], MAPPED_MAX * 4096ull);
	mapped_ranges_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live),  cmocka_unit_test(sets),   cmocka_unit_test(classes),
		cmocka_unit_test(lines), cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
