/* src/memory/sites/sites_samples.c: samples that are made up. */
#include "unit.h"

#include "memory/sites/sites.h"

/* A process can name ever new classes, also when there is no room for more samples. */
static void sites_many_classes(void **state)
{
	enum { SAMPLES = 1 << 20, CLASSES = 1 << 16, MORE = 100 };
	struct sites s;
	char name[16];

	(void)state;
	sites_init(&s);
	for (uint32_t i = 0; i < SAMPLES; i++)
		sites_sample_add(&s, i, "A", 1, 16, 16);
	assert_int_equal(s.samples.n, SAMPLES);
	assert_int_equal(s.left_out, 0);
	for (uint32_t i = 0; i < CLASSES + MORE; i++) {
		const int n = snprintf(name, sizeof(name), "C%u", i);

		sites_sample_add(&s, i, name, (size_t)n, 16, 16);
	}
	assert_int_equal(s.samples.n, SAMPLES);
	assert_int_equal(s.left_out, CLASSES + MORE);
	assert_in_range(s.classes.n, 2, CLASSES + 1);
	assert_int_equal(s.samples.v[0].n, 1);
	sites_sample_add(&s, 0, "A", 1, 16, 32); /* one that is there */
	assert_int_equal(s.samples.v[0].n, 2);
	sites_fini(&s);
}

/* A name from the process makes no row of its own. */
static void sites_name_of_lines(void **state)
{
	static const char name[] = "LA\n12:3:B;";
	struct sites s;

	(void)state;
	sites_init(&s);
	sites_sample_add(&s, 0, name, sizeof(name) - 1, 16, 16);
	assert_int_equal(s.samples.n, 1);
	assert_null(strchr(intern_text(&s.classes, s.samples.v[0].class), '\n'));
	sites_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_many_classes),
		cmocka_unit_test(sites_name_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
