#include "unit.h"

#include "data/options.h"

static struct options opts;

static int setup(void **state)
{
	options_init(&opts);
	return 0;
}

static int teardown(void **state)
{
	options_fini(&opts);
	return 0;
}

static void good(const char *text, enum option_id id, int64_t num)
{
	const char *error = NULL;

	if (!options_set_text(&opts, text, WHEN_COMPILE, &error))
		fail_msg("%s: %s", text, error);
	assert_int_equal(opts.v[id].num, num);
	assert_true(opts.v[id].set);
}

static void bad(const char *text, enum option_when when, const char *message)
{
	const char *error = NULL;

	assert_false(options_set_text(&opts, text, when, &error));
	assert_non_null(error);
	if (!strstr(error, message))
		fail_msg("%s: %s", text, error);
}

static void test_defaults(void **state)
{
	assert_int_equal(opt_num(&opts, OPT_STRSIZE), 256);
	assert_int_equal(opt_num(&opts, OPT_BUFSIZE), 4 << 20);
	assert_int_equal(opt_num(&opts, OPT_STATUSRATE), 1000000000);
	assert_int_equal(opt_num(&opts, OPT_CPU), -1);
	assert_int_equal(opt_num(&opts, OPT_BUFPOLICY), 0);
	assert_true(opt_on(&opts, OPT_TEMPORAL));
	assert_false(opt_on(&opts, OPT_QUIET));
	assert_false(opts.v[OPT_QUIET].set);
	assert_string_equal(opts.v[OPT_CPPPATH].text, "cpp");
}

static void test_values(void **state)
{
	good("quiet", OPT_QUIET, 1);
	good("quiet=0", OPT_QUIET, 0);
	good("quiet=on", OPT_QUIET, 1);
	good("quiet=unset", OPT_QUIET, 0);
	good("QUIET=set", OPT_QUIET, 1);
	good("bufsize=1k", OPT_BUFSIZE, 1024);
	good("bufsize=2M", OPT_BUFSIZE, 2 << 20);
	good("bufsize=1g", OPT_BUFSIZE, 1 << 30);
	good("bufsize=1t", OPT_BUFSIZE, 1ll << 40);
	good("bufsize=0x100", OPT_BUFSIZE, 256);
	good("switchrate=10hz", OPT_SWITCHRATE, 100000000);
	good("switchrate=10", OPT_SWITCHRATE, 100000000);
	good("switchrate=100ms", OPT_SWITCHRATE, 100000000);
	good("switchrate=5sec", OPT_SWITCHRATE, 5000000000);
	good("switchrate=2m", OPT_SWITCHRATE, 120000000000);
	good("switchrate=250us", OPT_SWITCHRATE, 250000);
	good("cpu=-1", OPT_CPU, -1);
	good("cpu=3", OPT_CPU, 3);
	good("bufpolicy=ring", OPT_BUFPOLICY, 2);
	good("engine=interp", OPT_ENGINE, 2);
	good("jstackframes=5", OPT_JSTACKFRAMES, 0);
	good("ctypes=/tmp/x", OPT_CTYPES, 0);
	good("define=A=1", OPT_DEFINE, 0);
	assert_string_equal(opts.v[OPT_DEFINE].text, "A=1");
}

static void test_bad(void **state)
{
	bad("nosuchthing=1", WHEN_COMPILE, "Invalid option name");
	bad("quite", WHEN_COMPILE, "did you mean quiet?");
	bad("bufsiez=1", WHEN_COMPILE, "did you mean bufsize?");
	bad("quiet=maybe", WHEN_COMPILE, "Invalid value");
	bad("bufsize=1x", WHEN_COMPILE, "Invalid value");
	bad("bufsize=-1", WHEN_COMPILE, "Invalid value");
	bad("bufsize=99999999999t", WHEN_COMPILE, "Invalid value");
	bad("bufsize", WHEN_COMPILE, "needs a value");
	bad("bufsize=", WHEN_COMPILE, "Invalid value");
	bad("switchrate=fast", WHEN_COMPILE, "Invalid value");
	bad("cpu=1x", WHEN_COMPILE, "Invalid value");
	bad("bufpolicy=none", WHEN_COMPILE, "switch|fill|ring");
	bad("bufsize=1k", WHEN_DYNAMIC, "illegal when tracing is active");
	/* nothing of it took effect */
	assert_int_equal(opt_num(&opts, OPT_BUFSIZE), 4 << 20);
	assert_false(opts.v[OPT_BUFSIZE].set);
}

static void test_dynamic(void **state)
{
	const char *error = NULL;

	assert_true(options_set(&opts, "quiet", "1", WHEN_DYNAMIC, &error));
	assert_true(options_set(&opts, "aggsortrev", NULL, WHEN_DYNAMIC, &error));
	assert_true(opt_on(&opts, OPT_AGGSORTREV));
	assert_string_equal(option_name(OPT_AGGSORTREV), "aggsortrev");
}

static void test_lock(void **state)
{
	options_lock(&opts, OPT_DESTRUCTIVE, "somebody else's to set");
	bad("destructive", WHEN_COMPILE, "somebody else's to set");
	bad("destructive=on", WHEN_COMPILE | WHEN_RUN, "somebody else's to set");
	good("destructive=off", OPT_DESTRUCTIVE, 0); /* as it is */
	options_lock(&opts, OPT_DESTRUCTIVE, NULL);
	good("destructive", OPT_DESTRUCTIVE, 1);
	options_lock(&opts, OPT_DESTRUCTIVE, "somebody else's to set");
	good("destructive", OPT_DESTRUCTIVE, 1);
	bad("destructive=0", WHEN_COMPILE, "somebody else's to set");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
