/* Ranges in use and gaps between them, as islands are placed. */
#include "unit.h"
#include "load/inproc/patch/ranges.h"

#define TEXT 0x555555000000ull
#define TEXT_END 0x555555010000ull

static void use(struct ranges *r, uint64_t lo, uint64_t hi)
{
	vec_push(&r->list, ((struct range){ lo, hi, true }));
}

static void test_nearest(void **state)
{
	struct ranges r = { 0 };

	use(&r, TEXT, TEXT_END);
	use(&r, TEXT_END + 0x8000, TEXT_END + 0x9000);
	/* before the text, with a page of distance, then behind it, which is nearer */
	assert_int_equal(ranges_gap(&r, TEXT, TEXT_END, 0x1000), TEXT - 0x2000);
	ranges_take(&r, TEXT - 0x2000, TEXT);
	assert_int_equal(ranges_gap(&r, TEXT, TEXT_END, 0x1000), TEXT_END + 0x1000);
	ranges_take(&r, TEXT_END + 0x1000, TEXT_END + 0x8000);
	assert_int_equal(ranges_gap(&r, TEXT, TEXT_END, 0x1000), TEXT - 0x4000);
	assert_true(ranges_has(&r, TEXT_END + 0x1000));
	assert_false(ranges_free(&r, TEXT_END + 0x9000, TEXT_END + 0xa000)); /* too near */
	assert_true(ranges_free(&r, TEXT_END + 0xa000, TEXT_END + 0xb000));
	ranges_fini(&r);
}

static void test_avoid(void **state)
{
	struct ranges r = { 0 };

	use(&r, TEXT, TEXT_END);
	ranges_avoid(&r, TEXT_END + 0x1000, TEXT_END + 0x2000);
	ranges_avoid(&r, TEXT - 0x100000, TEXT);
	assert_int_equal(ranges_gap(&r, TEXT, TEXT_END, 0x1000), TEXT_END + 0x3000);
	assert_false(ranges_has(&r, TEXT_END + 0x1000)); /* a place of the past is no mapping */
	ranges_fini(&r);
}

/* The place behind the heap is the nearest, and is taken only when no other is left. */
static void test_heap(void **state)
{
	struct ranges r = { .heap = { TEXT_END, TEXT_END + 0x10800, false } };

	use(&r, TEXT, TEXT_END);
	use(&r, TEXT_END, TEXT_END + 0x11000);
	assert_true(ranges_gap(&r, TEXT, TEXT_END, 0x1000) < TEXT);
	use(&r, TEXT_END + 0x200000, TEXT + 0x80000000);
	r.used.n = 0;
	r.searched = false;
	ranges_avoid(&r, 0x10000, TEXT);
	/* 32 KB are the largest power of two for which the place and three pages fit */
	assert_int_equal(ranges_gap(&r, TEXT, TEXT_END, 0x1e0000),
			 TEXT_END + 0x11000 + 0x8000 + 0x1000);
	ranges_fini(&r);
}

/* A search looks at each range once, or six times where the heap is in the way, and does not sort
 * the ranges again for each module: a process may have 65,000 mappings and 4,096 modules. */
static void test_work(void **state)
{
	enum { MAPPINGS = 3000, PLACES = 1000, MODULES = 50 };
	struct ranges r = { .heap = { TEXT_END, TEXT_END + 0x10000, false } };

	use(&r, TEXT, TEXT_END + 0x10000);
	for (uint32_t i = 1; i < MAPPINGS; i++)
		use(&r, TEXT_END + i * 0x100000ull, TEXT_END + i * 0x100000ull + 0xf0000);
	for (uint32_t i = 0; i < PLACES; i++)
		ranges_avoid(&r, TEXT - (i + 1) * 0x10000ull, TEXT - i * 0x10000ull);
	for (uint32_t i = 0; i < MODULES; i++) {
		const uint64_t at = ranges_gap(&r, TEXT, TEXT_END, 0x1000);

		assert_true(at);
		ranges_take(&r, at, at + 0x1000);
	}
	assert_true(r.looks <= 6ull * MODULES * (MAPPINGS + PLACES + MODULES));
	for (uint32_t i = 1; i < r.used.n; i++)
		assert_true(r.used.v[i - 1].lo <= r.used.v[i].lo);
	ranges_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_avoid),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
