#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sorted.h"

static void test_strings(void **state)
{
	cleanup_free char *a = xstrdup("abc"), *b = xstrndup("abcdef", 3),
			  *c = xasprintf("%s-%d", a, 7);
	cleanup_free char *d = xstrndup("ab", 10), *e = xmemdup("x\0y", 3);

	assert_string_equal(a, "abc");
	assert_string_equal(b, "abc");
	assert_string_equal(c, "abc-7");
	assert_string_equal(d, "ab");
	assert_memory_equal(e, "x\0y", 3);
	free(xmalloc(0));
	free(xcalloc(0, 8));
}

static void test_table(void **state)
{
	/* also where memory was used before */
	for (size_t n = 1; n < 40000000; n = n * 7 + 3) {
		uint8_t *p = xcalloc_table(n, 1);

		assert_int_equal((uintptr_t)p % (n < 2 << 20 ? 64 : 2 << 20), 0);
		for (size_t i = 0; i < n; i += n < 10000 ? 1 : 511)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
		free(p);
	}
	free(xcalloc_table(0, 8));
}

static void test_arena(void **state)
{
	struct arena a;
	uint8_t *p[200];

	arena_init(&a);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		size_t n = i * 37 % 5 == 0 ? 9000 + i : i;

		p[i] = arena_alloc(&a, n);
		assert_int_equal((uintptr_t)p[i] % 16, 0);
		for (size_t j = 0; j < n; j++)
			assert_int_equal(p[i][j], 0);
		memset(p[i], 0xff, n);
	}
	assert_string_equal(arena_strdup(&a, "one"), "one");
	assert_string_equal(arena_strndup(&a, "twofold", 3), "two");
	assert_string_equal(arena_printf(&a, "%03d", 3), "003");
	assert_ptr_not_equal(arena_alloc(&a, 0), arena_alloc(&a, 0));
	arena_fini(&a);
	arena_fini(&a);
}

static void test_vec(void **state)
{
	struct pair {
		int a, b;
	};
	VEC(struct pair) v = { 0 };
	VEC(uint64_t) u = { 0 };

	for (int i = 0; i < 1000; i++) {
		vec_add(&v)->a = i;
		vec_push(&u, (uint64_t)i << 32);
	}
	assert_int_equal(v.n, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(v.v[i].a, i);
		assert_int_equal(v.v[i].b, 0);
		assert_int_equal(u.v[i], (uint64_t)i << 32);
	}
	assert_int_equal(vec_last(&v)->a, 999);
	vec_fini(&v);
	vec_fini(&u);
	assert_int_equal(v.cap, 0);
}

/* More elements than 32 bits count are no fewer: the process ends, as for lack of memory. */
static void test_vec_too_many(void **state)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		VEC(char) v = { 0 };

		close(STDERR_FILENO);
		vec_push(&v, 1);
		vec_reserve(&v, (uint64_t)UINT32_MAX + 9);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void test_partition_point(void **state)
{
	static const int v[] = { 1, 3, 3, 5, 8 };

	for (uint32_t n = 0; n <= ARRAY_SIZE(v); n++)
		for (int limit = 0; limit < 10; limit++) {
			uint32_t below = 0;

			while (below < n && v[below] < limit)
				below++;
			assert_int_equal(partition_point(n, i, v[i] < limit), below);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),      cmocka_unit_test(test_table),
		cmocka_unit_test(test_arena),        cmocka_unit_test(test_vec),
		cmocka_unit_test(test_vec_too_many), cmocka_unit_test(test_partition_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
