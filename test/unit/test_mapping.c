/* Lists of mappings as /proc/PID/maps has them. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

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

/* Every way in which a mapping can lie over others, against an array with the file of each page. */
static void test_put(void **state)
{
	enum { PAGE = 4096, PAGES = 12 };
	struct mappings list = { 0 };
	uint32_t file[PAGES] = { 0 }, put = 1;

	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t a = 0; a < PAGES; a++)
			for (uint32_t b = a + 1; b <= PAGES; b += 1 + round, put++) {
				const struct mapping m = { .start = a * PAGE,
							   .end = b * PAGE,
							   .file = put,
							   .offset = put * 0x100000ull + a * PAGE,
							   .path = "" };

				mappings_put(&list, &m);
				for (uint32_t i = a; i < b; i++)
					file[i] = put;
				for (uint32_t i = 0; i < list.n; i++) {
					assert_true(list.v[i].start < list.v[i].end);
					assert_true(!i || list.v[i - 1].end <= list.v[i].start);
					assert_int_equal(list.v[i].offset,
							 list.v[i].file * 0x100000ull +
								 list.v[i].start);
				}
				for (uint32_t i = 0; i < PAGES; i++) {
					const struct mapping *at = mappings_find(&list, i * PAGE);

					assert_int_equal(at ? at->file : 0, file[i]);
				}
			}
	mappings_free(&list);
}

/* A path may lead to another file than the mapped one by the time it is opened. */
static void test_of_file(void **state)
{
	char a[] = "/tmp/descry-mapping-XXXXXX", b[] = "/tmp/descry-mapping-XXXXXX";
	const int fa = mkstemp(a), fb = mkstemp(b);
	struct stat first, other;
	struct mapping m = { 0 };

	(void)state;
	assert_true(fa >= 0 && fb >= 0);
	assert_int_equal(fstat(fa, &first), 0);
	m.inode = first.st_ino;
	assert_true(mapping_is_of_file(&m, a, &first));
	assert_int_equal(rename(b, a), 0);
	assert_int_equal(stat(a, &other), 0);
	assert_false(mapping_is_of_file(&m, a, &other));
	assert_false(mapping_is_of_file(&m, "/proc/12/root/map_files/1-2", &other));
	assert_false(mapping_is_of_file(&m, "/tmp/proc/12/map_files/1-2", &other));
	/* the kernel names the file itself, which overlayfs gives another inode */
	assert_true(mapping_is_of_file(&m, "/proc/12/map_files/1-2", &other));
	unlink(a);
	close(fa);
	close(fb);
}

/* A process can have thousands of mappings of code between those of a file. So many are compared
 * with the file as any real program has, however long the list is. */
static void test_moved(void **state)
{
	enum { MANY = 5000, MOST = 1100 };
	struct mappings own, list = { 0 };
	const struct mapping *code;
	uint32_t moved = 0, head = 0;

	(void)state;
	assert_null(mappings_read(getpid(), &own));
	code = mappings_find(&own, (uintptr_t)test_moved);
	assert_non_null(code);
	while (strcmp(own.v[head].path, code->path) || own.v[head].offset)
		head++;
	vec_push(&list, own.v[head]);
	vec_push(&list, *code);
	for (int i = 0; i < MANY; i++)
		vec_push(&list, ((struct mapping){ .start = code->start,
						   .end = code->start + 4096,
						   .path = "",
						   .read = true,
						   .exec = true }));
	mappings_claim_moved(getpid(), &list);
	for (uint32_t i = 0; i < list.n; i++)
		moved += list.v[i].moved;
	assert_true(list.v[2].moved && !list.v[list.n - 1].moved);
	assert_string_equal(list.v[2].path, code->path);
	assert_int_equal(list.v[2].offset, code->offset);
	assert_in_range(moved, 1, MOST);
	mappings_free(&list);
	mappings_free(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapping_list), cmocka_unit_test(test_mapping_order),
		cmocka_unit_test(test_put),          cmocka_unit_test(test_of_file),
		cmocka_unit_test(test_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
