/* Files with the names of interpreters that a process maps again and again: few are opened. */
#define _GNU_SOURCE
#include "unit.h"

#include <unistd.h>

#include "base/mem.h"
#include "program/runtime/runtime.h"

enum { MAPPINGS = 5000, PAGE = 4096 };

struct many {
	struct space space; /* first member */
	struct mappings list;
	uint32_t opened;
};

static struct err *many_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	*ret = &((struct many *)s)->list;
	return NULL;
}

static char *many_open_path(struct space *s, const struct mapping *m)
{
	((struct many *)s)->opened++;
	return xstrdup("/proc/self/exe"); /* an ELF file, but no interpreter */
}

static const struct space_ops many_ops = {
	.mappings = many_mappings,
	.open_path = many_open_path,
};

/* Returns how often a file was opened. files: how many different ones there are. */
static uint32_t look(uint32_t files, bool met)
{
	struct many m = { .space = { .ops = &many_ops, .name = "many", .pid = getpid() } };
	size_t budget = 1 << 20;
	struct arena names;
	struct runtime *r = NULL;

	arena_init(&names);
	for (uint32_t i = 0; i < MAPPINGS; i++)
		vec_push(&m.list,
			 (struct mapping){
				 .start = (i + 1ull) * PAGE,
				 .end = (i + 2ull) * PAGE,
				 .path = arena_printf(&names, "/d%u/libpython3.9.so", i % files),
				 .inode = 1 + i % files,
				 .read = true,
				 .exec = true });
	err_free(met ? runtime_find_met(&m.space, &budget, &r) : runtime_find(&m.space, &r));
	assert_null(r);
	vec_fini(&m.list);
	arena_fini(&names);
	return m.opened;
}

static void test_opens(void **state)
{
	for (int met = 0; met < 2; met++) {
		uint32_t one = look(1, met), many = look(MAPPINGS, met);

		assert_true(one > 0 && one <= 16);
		assert_true(many >= 16 && many <= 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_opens) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
