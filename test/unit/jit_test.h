/* Programs compiled for tests of the in-process compiler. */
#ifndef DESCRY_TEST_JIT_TEST_H
#define DESCRY_TEST_JIT_TEST_H

#include "unit.h"

#include "agent/ring.h"
#include "insn.h"
#include "jit_mock.h"

static inline int setup(void **state)
{
	mock_init();
	return 0;
}

static inline int teardown(void **state)
{
	mock_fini();
	return 0;
}

#define COMPILE(p) compile((p), ARRAY_SIZE(p))
static inline void compile(const struct bpf_insn *p, size_t n)
{
	struct err *e = mock_compile(p, (uint32_t)n);

	if (e)
		fail_msg("%s", e->text);
}

#define REFUSED(p, text) refused((p), ARRAY_SIZE(p), (text))
static inline void refused(const struct bpf_insn *p, size_t n, const char *text)
{
	struct err *e = mock_compile(p, (uint32_t)n);

	if (!e)
		fail_msg("accepted, though %s", text);
	if (!strstr(e->text, text))
		fail_msg("\"%s\" does not say \"%s\"", e->text, text);
	err_free(e);
}

static inline uint32_t violations(void)
{
	return mock.calls[WIRE_AGENT_violation];
}

/* Runs each test twice: with the agent near the code and far from it. */
#define JIT_TESTS(tests) \
	(cmocka_run_group_tests(tests, NULL, NULL) + \
	 (mock_far = true, cmocka_run_group_tests_name("far", tests, NULL, NULL)))
#define JIT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
