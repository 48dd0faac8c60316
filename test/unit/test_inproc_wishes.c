/* Switches of probes that check whether they are wanted (src/load/inproc/patch/wishes.c). */
#include "unit.h"

#include "load/inproc/patch/plan_private.h"

enum { PROBES = 5000, QUESTIONS = 16384 };

/* A small file has many probes of one name, which share a long list of questions. Each question is
 * looked up once. */
static void test_shared_list(void **state)
{
	static struct object_question questions[QUESTIONS];
	static const struct object_question *list[QUESTIONS];
	const struct probe shared = { .asks = list, .nasks = QUESTIONS };
	struct inproc_process p = { 0 };
	struct wishes w = { 0 };

	for (uint32_t i = 0; i < QUESTIONS; i++) {
		questions[i].addr = 0x1000 + 8 * (i / 2); /* each place twice */
		list[i] = &questions[i];
	}
	for (uint32_t i = 0; i < PROBES; i++)
		wishes_add(&w, &p, 0, &shared);
	assert_int_equal(p.semaphores.n, QUESTIONS / 2);
	assert_int_equal(p.semaphores.v[1].addr, 0x1008);
	assert_ptr_equal(p.semaphores.v[1].question, list[2]);
	assert_true(w.looked <= QUESTIONS + PROBES);
	/* the same addresses of another module are other places */
	wishes_add(&w, &p, 1, &shared);
	assert_int_equal(p.semaphores.n, QUESTIONS);
	assert_int_equal(p.semaphores.v[QUESTIONS - 1].module, 1);
	vec_fini(&p.semaphores);
	wishes_fini(&w);
}

static void test_flags(void **state)
{
	const struct probe flagged = { .flag = 0x2000 }, other = { .flag = 0x2008 };
	struct inproc_process p = { 0 };
	struct wishes w = { 0 };

	wishes_add(&w, &p, 0, &flagged);
	wishes_add(&w, &p, 0, &flagged);
	wishes_add(&w, &p, 0, &other);
	assert_int_equal(p.semaphores.n, 2);
	assert_true(p.semaphores.v[0].is_bool);
	assert_int_equal(p.semaphores.v[1].addr, 0x2008);
	vec_fini(&p.semaphores);
	wishes_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_list),
		cmocka_unit_test(test_flags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
