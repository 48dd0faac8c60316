/* Lists of mappings as /proc/PID/maps has them. */
#include "unit.h"

#include "base/mem.h"
#include "program/space/mapping.h"

static void test_mapping_list(void **state)
{
	static const char text[] = "1000-3000 r-xp 00002000 fe:01 12345   /a\\012b\n"
				   "nonsense\n"
				   "5000-4000 r--p 0 0:0 0\n"
				   "8000-9000 rw-s 00000000 00:00 0 \n"
				   "9000-a000 ---p 00000000 00:00 0 [stack]";
	struct mappings m;

	mappings_parse(xstrdup(text), strlen(text), &m);
	assert_int_equal(m.n, 3);
	assert_string_equal(m.v[0].path, "/a\nb");
	assert_true(m.v[0].read && !m.v[0].write && m.v[0].exec);
	assert_int_equal(m.v[0].offset, 0x2000);
	assert_int_equal(m.v[0].dev_major, 0xfe);
	assert_int_equal(m.v[0].inode, 12345);
	assert_true(m.v[1].write && !m.v[1].exec);
	assert_string_equal(m.v[1].path, "");
	assert_string_equal(m.v[2].path, "[stack]");
	assert_ptr_equal(mappings_find(&m, 0x2fff), &m.v[0]);
	assert_null(mappings_find(&m, 0x3000));
	assert_ptr_equal(mappings_find(&m, 0x9000), &m.v[2]);
	assert_null(mappings_find(&m, 0xa000));
	assert_int_equal(mappings_from(&m, 0x3000), 1);
	mappings_free(&m);
	assert_int_equal(m.n, 0);
}

/* A list of a process that changed while it was read has mappings again, longer than before. */
static void test_mapping_order(void **state)
{
	static const char text[] = "1000-2000 r-xp 00005000 fe:01 7   /a\n"
				   "4000-5000 r--p 00000000 00:00 0 \n"
				   "1000-3000 r-xp 00005000 fe:01 7   /a\n"
				   "1000-7000 r-xp 00005000 fe:01 7   /a\n"
				   "6000-8000 rw-p 00000000 00:00 0 [heap]\n"
				   "4000-5000 r--p 00000000 00:00 0 \n"
				   "8000-9000 rw-p 00000000 00:00 0 \n";
	static const uint64_t ends[] = { 0x2000, 0x5000, 0x7000, 0x8000, 0x9000 };
	struct mappings m;

	mappings_parse(xstrdup(text), strlen(text), &m);
	mappings_order(&m);
	assert_int_equal(m.n, 5);
	for (uint32_t i = 0; i < m.n; i++) {
		assert_int_equal(m.v[i].end, ends[i]);
		assert_true(!i || m.v[i].start >= m.v[i - 1].end);
	}
	assert_int_equal(m.v[2].start, 0x5000);
	assert_int_equal(m.v[2].offset, 0x9000);
	assert_int_equal(m.v[3].start, 0x7000);
	assert_int_equal(m.v[3].offset, 0);
	mappings_free(&m);
	mappings_order(&m); /* an empty one */
	assert_int_equal(m.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapping_list),
		cmocka_unit_test(test_mapping_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
