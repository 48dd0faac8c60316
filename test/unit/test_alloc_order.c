/* Which frees of a preloaded recorder wait for loads (agent/alloc_order.h): those of blocks that
 * the thread has not allocated itself, or that another thread has freed since then. */
#include "unit.h"

#include <stdbool.h>

#include "agent/alloc_order.h"

static const uint32_t off;
struct state state = { .on = &off };
uint64_t alloc_crossed[ALLOC_CROSSED];

/* Two threads in this one. */
static struct alloc_own owns[2][ALLOC_OWN];
static struct thread a = { .own = owns[0] }, b = { .own = owns[1] };

enum { ADDR = 0x10000 };

static int begin(void **unused)
{
	(void)unused;
	memset(owns, 0, sizeof(owns));
	memset(alloc_crossed, 0, sizeof(alloc_crossed));
	state.several = 1;
	return 0;
}

static uint64_t allocate(struct thread *t, uint64_t addr)
{
	return ticks_of(t, WIRE_ALLOC_MALLOC, addr);
}

/* Returns true when the free waits. Then it leaves its ticks. */
static bool waits(struct thread *t, uint64_t addr)
{
	const uint64_t before = *crossed_of(addr), now = ticks_of(t, WIRE_ALLOC_FREE, addr),
		       after = *crossed_of(addr);

	assert_true(after == before || after == now);
	return after != before;
}

static void test_own(void **unused)
{
	uint64_t born;

	(void)unused;
	born = allocate(&a, ADDR);
	assert_true(ticks() >= born);
	assert_false(waits(&a, ADDR));
	assert_true(waits(&a, ADDR)); /* it is not allocated again: by this thread, at least */
	allocate(&a, ADDR);
	assert_false(waits(&a, ADDR)); /* later than the free that has waited */
	allocate(&a, ADDR);
	ticks_of(&a, WIRE_ALLOC_REALLOC_FROM, ADDR);
	allocate(&a, ADDR + 16);
	assert_true(waits(&a, ADDR));
	assert_false(waits(&a, ADDR + 16));
	assert_true(waits(&a, ADDR + 32));
}

static void test_another_threads(void **unused)
{
	(void)unused;
	allocate(&a, ADDR);
	assert_true(waits(&b, ADDR));
	allocate(&b, ADDR);
	/* a has allocated the block, but b has freed it since then, and handed it back */
	assert_true(waits(&a, ADDR));
	/* and so has b now */
	assert_true(waits(&b, ADDR));
}

static void test_few_are_known(void **unused)
{
	uint32_t own = 0;

	(void)unused;
	for (uint64_t i = 0; i < 4 * ALLOC_OWN; i++)
		allocate(&a, ADDR + 48 * i);
	for (uint64_t i = 0; i < 4 * ALLOC_OWN; i++)
		own += !waits(&a, ADDR + 48 * i);
	assert_in_range(own, ALLOC_OWN / 4, ALLOC_OWN);
}

static void test_without_memory(void **unused)
{
	struct thread bare = { 0 };

	(void)unused;
	allocate(&bare, ADDR);
	assert_true(waits(&bare, ADDR));
	state.several = 0; /* one thread: nothing can come from another */
	assert_false(waits(&bare, ADDR));
}

/* The latest ticks stay, in whatever order threads leave theirs. */
static void test_latest(void **unused)
{
	const uint64_t later = ticks() + (1ull << 40);

	(void)unused;
	*crossed_of(ADDR) = later;
	allocate(&a, ADDR);
	ticks_of(&a, WIRE_ALLOC_FREE, ADDR);
	assert_int_equal(*crossed_of(ADDR), later);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_own, begin),
		cmocka_unit_test_setup(test_another_threads, begin),
		cmocka_unit_test_setup(test_few_are_known, begin),
		cmocka_unit_test_setup(test_without_memory, begin),
		cmocka_unit_test_setup(test_latest, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
