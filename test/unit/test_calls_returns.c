/* The places where functions return: in code of this test, of this process. */
#include "unit.h"

#include <unistd.h>

#include "calls/returns.h"

/* Functions that end with jumps to another library, through one slot of the PLT. */
__asm__(".text\n"
	".globl returns_test_one\n"
	".type returns_test_one, @function\n"
	"returns_test_one:\n"
	"test %edi, %edi\n"
	"jns 1f\n"
	"jmp labs@PLT\n"
	"1: ret\n"
	".size returns_test_one, . - returns_test_one\n"
	".globl returns_test_many\n"
	".type returns_test_many, @function\n"
	"returns_test_many:\n"
	"test %edi, %edi\n"
	".rept 1000\n"
	"jns 1f\n"
	"jmp labs@PLT\n"
	"1:\n"
	".endr\n"
	"ret\n"
	".size returns_test_many, . - returns_test_many\n"
	".globl returns_test_indirect\n"
	".type returns_test_indirect, @gnu_indirect_function\n"
	"returns_test_indirect:\n"
	"lea returns_test_one(%rip), %rax\n"
	"ret\n"
	".size returns_test_indirect, . - returns_test_indirect\n");

static struct type_graph *types;
static struct symbols *symbols;
static struct probe_set ps;
static const struct process_objects *objects;
static struct returns *all;

static int setup(void **state)
{
	(void)state;
	types = type_graph_new();
	symbols = symbols_new();
	probe_set_init(&ps, types, symbols);
	assert_null(process_objects(&ps, getpid(), &objects));
	assert_null(returns_new(getpid(), objects, &all));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	returns_free(all);
	probe_set_fini(&ps);
	symbols_free(symbols);
	type_graph_free(types);
	return 0;
}

/* Returns how many places were found, and expects that all are known or not. */
static uint32_t places_of(const char *name, bool leaf)
{
	const struct process_object *po = &objects->v[0];
	const struct object_symbol *s = object_find_name(po->object, name);
	struct return_places p = { 0 };
	uint32_t n;

	assert_true(po->is_main);
	assert_non_null(s);
	assert_null(returns_find(all, po, s, false, &p));
	assert_int_equal(p.leaf, leaf);
	n = p.rets.n;
	vec_fini(&p.rets);
	return n;
}

/* Each slot is followed once, however many jumps lead to it. */
static void many_jumps(void **state)
{
	uint64_t first, one, many;
	uint32_t n;

	(void)state;
	n = places_of("returns_test_one", true);
	assert_true(n > 1); /* there, and where labs() returns */
	first = returns_work(all);
	assert_int_equal(places_of("returns_test_one", true), n);
	one = returns_work(all) - first;
	assert_true(one);
	assert_int_equal(places_of("returns_test_many", true), n);
	first = returns_work(all);
	assert_int_equal(places_of("returns_test_many", true), n);
	many = returns_work(all) - first;
	/* twice a jump that is known, and no slot of a PLT for each */
	assert_in_range(many, one, one + 2 * 1000 * 16);
}

/* Slots and exits count as work, which has a limit. */
static void limit(void **state)
{
	const struct process_object *po = &objects->v[0];
	const struct object_symbol *s = object_find_name(po->object, "returns_test_many");
	struct return_places p = { 0 };

	(void)state;
	returns_limit(all, 1);
	assert_int_equal(places_of("returns_test_one", false), 0);
	assert_true(returns_work(all) >= 1);
	assert_null(returns_find(all, po, s, false, &p));
	assert_true(p.blind && p.too_much);
	assert_int_equal(p.rets.n, 0);
}

/* An indirect function is looked for in all files: this is work. A file may have a million. */
static void indirect(void **state)
{
	const struct process_object *po = &objects->v[0];
	const struct object_symbol *s = object_find_name(po->object, "returns_test_indirect");
	struct return_places p = { 0 };
	const uint64_t before = returns_work(all);

	(void)state;
	assert_non_null(s);
	assert_true(s->is_ifunc);
	assert_null(returns_find(all, po, s, false, &p));
	vec_fini(&p.rets);
	assert_true(returns_work(all) - before >= objects->n * 16);
	p = (struct return_places){ 0 };
	returns_limit(all, 1);
	assert_null(returns_find(all, po, s, false, &p));
	assert_true(p.blind && p.too_much);
	vec_fini(&p.rets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_jumps, setup, teardown),
		cmocka_unit_test_setup_teardown(limit, setup, teardown),
		cmocka_unit_test_setup_teardown(indirect, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
