/* Files whose symbols share names, and that are asked for much: each question takes the time of a
 * search. Each test takes minutes when a question goes over the whole file. */
#include "elf_file.h"
#include "unit.h"

enum { CODE = 0x100000, N = 100000 };

static struct object *with_functions(const struct elf_function *functions, uint32_t n)
{
	static const uint8_t code[N];
	const struct elf_piece text = { ".text", SHF_ALLOC | SHF_EXECINSTR, CODE, code,
					sizeof(code) };

	return elf_file(&text, 1, functions, n);
}

/* All functions have one name. Each is asked for, as by the finder of calls. */
static void test_one_name(void **state)
{
	struct elf_function *f = xcalloc(N, sizeof(*f));
	struct object *o;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		f[i] = (struct elf_function){ "f", CODE + i, 1 };
	o = with_functions(f, N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t n;

		assert_non_null(object_find_names(o, "f", &n));
		assert_int_equal(n, N);
	}
	object_free(o);
	free(f);
}

/* Values are asked for one by one. */
static void test_values(void **state)
{
	struct elf_function *f = xcalloc(N, sizeof(*f));
	char(*names)[16] = xcalloc(N, sizeof(*names));
	uint64_t addr;
	struct object *o;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(*names), i % 2 ? "f%u@@V1" : "f%u", i);
		f[i] = (struct elf_function){ names[i], CODE + i % 4096, 1 };
	}
	f[N - 1].name = "f0"; /* the first counts */
	o = with_functions(f, N);
	for (uint32_t i = 0; i + 1 < N; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		assert_true(object_symbol_value(o, name, &addr));
		assert_int_equal(addr, CODE + i % 4096);
		assert_true(object_symbol_value(o, names[i], &addr));
		assert_int_equal(addr, CODE + i % 4096);
		snprintf(name, sizeof(name), "g%u", i);
		assert_false(object_symbol_value(o, name, &addr));
	}
	object_free(o);
	free(names);
	free(f);
}

/* Names that are ends of one long one: together they are not much longer than the file. */
static void test_names_of_a_small_file(void **state)
{
	enum { LONG = 60000, FEW = 10000 };
	struct elf_function *f = xcalloc(FEW, sizeof(*f));
	char *name = xmalloc(LONG + 1);
	struct object *o;
	uint32_t n;

	(void)state;
	memset(name, '_', LONG);
	name[LONG] = 0;
	for (uint32_t i = 0; i < FEW; i++)
		f[i] = (struct elf_function){ name, CODE + i % 4096, 1 + i };
	o = with_functions(f, FEW);
	(void)object_symbols(o, &n);
	assert_in_range(n, 200, 400);
	object_free(o);
	free(name);
	free(f);
}

/* A file with as many sections as may be is no Go program each time anew. */
static void test_sections(void **state)
{
	enum { SECTIONS = 65000 };
	struct elf_piece *p = xcalloc(SECTIONS, sizeof(*p));
	struct object *o;

	(void)state;
	for (uint32_t i = 0; i < SECTIONS; i++)
		p[i].name = ".gopclnta";
	o = elf_file(p, SECTIONS, NULL, 0);
	for (uint32_t i = 0; i < N; i++)
		assert_false(object_is_go(o));
	object_free(o);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_name),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_names_of_a_small_file),
		cmocka_unit_test(test_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
