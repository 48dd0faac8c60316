/* Untouched parts that are cut out of the regions of a copy. */
#include "unit.h"
#include "memory/copy/copy_private.h"

#define GB (1ull << 30)
#define MB (1ull << 20)

static struct memory_copy *copy_of(const struct space_range *regions, uint32_t n)
{
	struct memory_copy *c = xcalloc(1, sizeof(*c));

	for (uint32_t i = 0; i < n; i++)
		vec_push(&c->regions, ((struct memory_region){ .start = regions[i].start,
							       .end = regions[i].end,
							       .shared = i == 1 }));
	return c;
}

static void check(const struct memory_copy *c, const struct space_range *want, uint32_t n)
{
	assert_int_equal(c->regions.n, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(c->regions.v[i].start, want[i].start);
		assert_int_equal(c->regions.v[i].end, want[i].end);
	}
}

/* The widest go first, at the beginning, between runs and at the end; a region without a run. */
static void test_widest(void **state)
{
	const struct space_range regions[] = { { GB, 100 * GB },
					       { 200 * GB, 240 * GB },
					       { 300 * GB, 300 * GB + MB } };
	const struct space_range touched[] = { { 20 * GB, 21 * GB }, { 31 * GB, 32 * GB } };
	const struct space_range most[] = { { 20 * GB, 32 * GB }, { 300 * GB, 300 * GB + MB } };
	const struct space_range wide[] = { { GB, 32 * GB },
					    { 200 * GB, 240 * GB },
					    { 300 * GB, 300 * GB + MB } };
	space_range_vec runs = { 0 };
	struct memory_copy *c = copy_of(regions, 3);

	for (uint32_t i = 0; i < 2; i++)
		vec_push(&runs, touched[i]);
	copy_cut_gaps(c, &runs, 137 * GB); /* exactly what there is */
	check(c, regions, 3);
	copy_cut_gaps(c, &runs, 70 * GB);
	check(c, wide, 3);
	assert_true(c->regions.v[1].shared && !c->regions.v[0].shared);
	copy_cut_gaps(c, &runs, 10 * GB);
	check(c, most, 2);
	memory_copy_free(c);
	vec_fini(&runs);
}

/* A region that has its memory already stays. */
static void test_kept(void **state)
{
	const struct space_range regions[] = { { GB, 100 * GB }, { 200 * GB, 240 * GB } };
	space_range_vec runs = { 0 };
	struct memory_copy *c = copy_of(regions, 2);

	c->regions.v[0].room = (struct space_range){ 1, 2 };
	copy_cut_gaps(c, &runs, 0);
	check(c, regions, 1);
	c->regions.v[0].room = (struct space_range){ 0 };
	memory_copy_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widest),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
