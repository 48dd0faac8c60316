/* What a look for libraries reads of a process that has many mappings
 * (src/load/inproc/follow/mapped_code.h). */
#define _GNU_SOURCE
#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/inproc/follow/mapped_code.h"

enum { PIECES = 1000, PAGE = 4096 };

/* Two files in turn, in many mappings: each file is looked at once. */
static void test_many_mappings(void **state)
{
	char other[] = "/tmp/test_inproc_loads.XXXXXX";
	const int fds[] = { open("/proc/self/exe", O_RDONLY | O_CLOEXEC), mkstemp(other) };
	struct mapped_codes before = { 0 }, c = { 0 };
	uint8_t *room = mmap(NULL, PIECES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(fds[0] >= 0 && fds[1] >= 0 && room != MAP_FAILED);
	assert_int_equal(ftruncate(fds[1], PAGE), 0);
	assert_null(mapped_codes_read(&before, getpid()));
	for (int i = 0; i < PIECES; i++)
		assert_true(mmap(room + i * PAGE, PAGE, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_FIXED, fds[i & 1], 0) != MAP_FAILED);
	assert_null(mapped_codes_read(&c, getpid()));
	assert_int_equal(c.v.n, before.v.n + PIECES);
	assert_int_equal(c.files, before.files + 1);
	for (int i = 0; i < 2; i++) {
		const struct mapped_code *v;
		struct stat st;
		uint32_t n, nhad, in = 0;

		assert_int_equal(fstat(fds[i], &st), 0);
		(void)mapped_codes_of(&before, st.st_dev, st.st_ino, &nhad);
		v = mapped_codes_of(&c, st.st_dev, st.st_ino, &n);
		assert_int_equal(nhad > 0, !i);
		assert_int_equal(n, nhad + PIECES / 2);
		for (uint32_t k = 0; k < n; k++) {
			assert_true(!k || v[k - 1].hi <= v[k].lo);
			if (v[k].lo < (uintptr_t)room || v[k].lo >= (uintptr_t)room + PIECES * PAGE)
				continue;
			assert_int_equal(v[k].lo,
					 (uintptr_t)room + (2 * in++ + (uint32_t)i) * PAGE);
			assert_int_equal(v[k].offset, 0);
		}
		assert_int_equal(in, PIECES / 2);
		(void)mapped_codes_of(&c, st.st_dev, st.st_ino + (1ull << 60), &n);
		assert_int_equal(n, 0);
		close(fds[i]);
	}
	mapped_codes_fini(&c);
	mapped_codes_fini(&before);
	munmap(room, PIECES * PAGE);
	unlink(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
