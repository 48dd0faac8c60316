/* Which engine is named, and in which order engines are tried. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "load/plan/plan.h"

static const struct engine_type *named(const char *word)
{
	const struct engine_type *type;
	struct options o;
	const char *why;

	options_init(&o);
	assert_true(options_set(&o, "engine", word, WHEN_COMPILE, &why));
	type = plan_engine_named(&o);
	options_fini(&o);
	return type;
}

/* The words of options.def stand in the order of plan.c's table. */
static void words_of_the_option(void **state)
{
	static const char *const words[] = { "kernel", "interp", "inproc" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_string_equal(named(words[i])->name, words[i]);
	assert_null(named("auto"));
}

/* -x engine has precedence over the caller's choice. */
static void one_engine(void **state)
{
	struct engine_plan p = { 0 };
	struct options o;
	const char *why;

	options_init(&o);
	p.options = &o;
	plan_begin(&p, &engine_inproc);
	assert_int_equal(p.ntries, 1);
	assert_string_equal(p.tries[0].type->name, "inproc");
	assert_true(options_set(&o, "engine", "interp", WHEN_COMPILE, &why));
	plan_begin(&p, &engine_inproc);
	assert_int_equal(p.ntries, 1);
	assert_string_equal(p.tries[0].type->name, "interp");
	plan_fini(&p);
	options_fini(&o);
}

/* An engine that was named is the only choice. Its error is reported unchanged. */
static void named_engine_fails(void **state)
{
	struct engine_plan p = { 0 };
	struct err *e = err_new(EPERM, "no");
	struct options o;
	const char *why;
	char *said;

	options_init(&o);
	p.options = &o;
	assert_true(options_set(&o, "engine", "kernel", WHEN_COMPILE, &why));
	plan_begin(&p, NULL);
	assert_false(plan_next(&p, &e, &said));
	assert_string_equal(e->text, "no");
	assert_null(said);
	err_free(e);
	plan_fini(&p);
	options_fini(&o);
}

/* No process named: only the kernel engine. Its error is followed by a hint at what works without
 * it. */
static void nothing_named(void **state)
{
	struct err *e = err_new(EPERM, "no");
	struct engine_plan p = { 0 };
	struct bound b = { 0 };
	struct options o;
	char *said;

	options_init(&o);
	p.options = &o;
	p.bound = &b;
	plan_begin(&p, NULL);
	assert_int_equal(p.ntries, 1);
	assert_string_equal(p.tries[0].type->name, "kernel");
	assert_false(plan_next(&p, &e, &said));
	assert_non_null(strstr(e->text, "without it, pid and USDT probes"));
	err_free(e);
	plan_fini(&p);
	options_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_the_option),
		cmocka_unit_test(one_engine),
		cmocka_unit_test(named_engine_fails),
		cmocka_unit_test(nothing_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
