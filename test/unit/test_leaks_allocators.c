/* The heaps of mimalloc, jemalloc and tcmalloc in src/memory/leaks/, on memory that is made up. */
#define _GNU_SOURCE /* mincore() */
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>

#include "allocator_memory.h"

static struct allocator_memory mem;

static int setup(void **state)
{
	(void)state;
	am_init(&mem);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	am_fini(&mem);
	return 0;
}

static struct leaks *find(void)
{
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;

	assert_null(memory_copy(&mem.space, &c));
	assert_null(leaks_find(c, &l));
	memory_copy_free(c);
	return l;
}

/* Holds the blocks from `from` to `to`, but for those at these numbers. */
static void hold(uint64_t start, uint64_t each, uint32_t from, uint32_t to, uint32_t but)
{
	static uint64_t at = AM_VAR;

	for (uint32_t i = from; i < to; i++)
		if (i != but)
			am_put(&mem, AM_VAR + at++ % 0x200 * 8, start + i * each);
}

/* Expects one leak, and so many blocks. */
static void expect(uint64_t lost, uint64_t used, uint64_t unused)
{
	struct leaks *l = find();

	assert_false(l->torn);
	assert_int_equal(l->used, used);
	assert_int_equal(l->unused, unused);
	assert_int_equal(l->blocks.n, 1);
	assert_int_equal(l->blocks.v[0].addr, lost);
	assert_int_equal(l->leaked, 1);
	leaks_free(l);
}

static void mimalloc(void **state)
{
	(void)state;
	am_mimalloc(&mem);
	hold(AM_MI_SMALL, 64, 7, 16, 9);
	hold(AM_MI_SMALL, 64, 1, 3, 0);
	hold(AM_MI_LARGE, 4096, 1, 4, 0);
	expect(AM_MI_SMALL + 64 * 9, 14, 6);
}

static void jemalloc(void **state)
{
	(void)state;
	am_jemalloc(&mem);
	hold(AM_HEAP, 64, 0, 60, 11);
	hold(AM_JE_LARGE + 16383, 0, 0, 1, 1);
	expect(AM_HEAP + 64 * 11, 60, 5);
}

static void tcmalloc(void **state)
{
	(void)state;
	am_tcmalloc(&mem);
	hold(AM_HEAP, 64, 0, 128, 20); /* which an old slot of the central cache leads to */
	hold(AM_HEAP + 0x2000, 0, 0, 1, 1);
	expect(AM_HEAP + 64 * 20, 124, 5);
}

/* Lists that go in a circle, or lead elsewhere, and counts that are wrong, are said. */
static void damaged(void **state)
{
	static void (*const make[])(struct allocator_memory *) = { am_mimalloc, am_jemalloc,
								   am_tcmalloc };
	static const uint64_t at[] = { AM_MI_SMALL + 64 * 4, AM_OWN, AM_HEAP + 64 * 3 };
	const uint64_t word[] = { AM_MI_SMALL, 1ull << 12 | 4ull << 20 | 9ull << 28,
				  AM_HEAP + 64 * 2 + 8 };

	for (int i = 0; i < 3; i++) {
		struct leaks *l;

		am_fini(&mem);
		setup(state);
		make[i](&mem);
		am_put(&mem, at[i], word[i]);
		l = find();
		assert_true(l->torn);
		assert_int_equal(l->remarks.n, 1);
		leaks_free(l);
	}
}

/* A table whose words all lead to memory that is nearly empty, as the root of a tree does. */
static void many_tables(void **state)
{
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;
	struct err *e;

	(void)state;
	am_tcmalloc(&mem); /* the search has its classes */
	am_put(&mem, AM_ROOT + 8 * ((uint64_t)AM_HEAP >> 31), 0);
	for (uint64_t at = AM_DATA; at < AM_DATA + 0x200000; at += 8)
		am_put(&mem, at, AM_META + 0x80000 + at % 0x8000 / 64 * 64);
	for (uint64_t at = AM_META; at < AM_META + AM_SIZE; at += MEMORY_PAGE)
		am_put(&mem, at, 0);
	assert_null(memory_copy(&mem.space, &c));
	e = leaks_find(c, &l);
	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	err_free(e);
	memory_copy_free(c);
}

/* A mapping may have a span of terabytes. What the program has not touched is not looked at. */
static void wide_mapping(void **state)
{
	enum { STEP = 32 << 20, STEPS = 64 };
	const uint64_t start = 0x7e0000000000, size = (uint64_t)STEP * STEPS;
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct memory_region r = { .start = start, .end = start + size, .bytes = bytes };
	struct memory_copy c = { 0 };
	struct leaks *l = NULL;
	struct err *e;

	(void)state;
	assert_ptr_not_equal(bytes, MAP_FAILED);
	vec_push(&c.regions, r);
	vec_push(&c.runs, ((struct space_range){ start, start + MEMORY_PAGE }));
	e = leaks_find(&c, &l);
	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	err_free(e);
	for (uint64_t at = STEP; at < size; at += STEP) {
		unsigned char present = 1;

		assert_int_equal(mincore(bytes + at, MEMORY_PAGE, &present), 0);
		assert_int_equal(present & 1, 0);
	}
	vec_fini(&c.regions);
	vec_fini(&c.runs);
	munmap(bytes, size);
}

/* Each group has its own blocks below it, whatever their order. */
static void blocks_of_groups(void **state)
{
	enum { GROUPS = 3, BLOCKS = 7 };
	static const uint32_t group[BLOCKS] = { 2, 0, 1, 0, 2, 2, 0 };
	const struct leaks_shown how = { .name = "p", .most = 2, .blocks = true };
	const struct memory_copy c = { 0 };
	struct leaks l = { .leaked = BLOCKS };
	struct out o;

	(void)state;
	for (uint32_t i = 0; i < GROUPS; i++)
		vec_push(&l.groups, ((struct leaks_group){ .type = "T", .first = i }));
	for (uint32_t i = 0; i < BLOCKS; i++)
		vec_push(&l.blocks, ((struct leaks_block){ .addr = 0xb00 + i, .group = group[i] }));
	out_init(&o, NULL);
	leaks_print(&l, &c, &how, &o);
	out_char(&o, '\0');
	assert_non_null(strstr(o.v, "0xb01"));
	assert_true(strstr(o.v, "0xb01") < strstr(o.v, "0xb03"));
	assert_true(strstr(o.v, "0xb03") < strstr(o.v, "0xb06"));
	assert_true(strstr(o.v, "0xb06") < strstr(o.v, "0xb02"));
	assert_null(strstr(o.v, "0xb00"));
	assert_null(strstr(o.v, "0xb04"));
	out_fini(&o);
	vec_fini(&l.groups);
	vec_fini(&l.blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mimalloc, setup, teardown),
		cmocka_unit_test_setup_teardown(jemalloc, setup, teardown),
		cmocka_unit_test_setup_teardown(tcmalloc, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(many_tables, setup, teardown),
		cmocka_unit_test(wide_mapping),
		cmocka_unit_test(blocks_of_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
