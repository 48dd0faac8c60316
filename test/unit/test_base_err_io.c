#include "unit.h"

#include <errno.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mapped.h"
#include "base/mem.h"

static void test_err(void **state)
{
	cleanup_err struct err *e = err_errno(ENOENT, "open");

	e = err_wrap(e, "reading symbols of %s", "/bin/x");
	assert_int_equal(e->code, ENOENT);
	assert_string_equal(e->text, "reading symbols of /bin/x: open: No such file or directory");
	err_free(NULL);
	/* a name makes no line of its own */
	err_free(e);
	e = err_wrap(err_errno(ENOENT, "a\nb"), "reading %s", "\n");
	assert_string_equal(e->text, "reading \\012: a\\012b: No such file or directory");
	err_free(e);
	e = err_wrap(err_lines(EINVAL, "one\ntwo"), "three");
	assert_string_equal(e->text, "three: one\ntwo");
}

static void test_read(void **state)
{
	char path[] = "/tmp/descry-unit-XXXXXX";
	cleanup_free char *text = NULL, *proc = NULL;
	cleanup_err struct err *e = NULL;
	size_t len = 0;
	struct mapped map;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_null(mapped_open(path, &map));
	assert_int_equal(map.len, 0);
	mapped_close(&map);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(write(fd, "0123456789", 10), 10);
	close(fd);
	assert_null(io_read_file(path, &text, &len));
	assert_int_equal(len, 30000);
	assert_int_equal(strlen(text), len);
	assert_null(mapped_open(path, &map));
	assert_int_equal(map.len, len);
	assert_memory_equal(map.p, text, len);
	assert_null(mapped_check(&map, path));
	mapped_close(&map);
	unlink(path);

	/* the size of /proc files is 0 */
	assert_null(io_read_file("/proc/self/maps", &proc, &len));
	assert_true(len > 100);
	assert_int_equal(strlen(proc), len);

	e = io_read_file(path, &text, &len);
	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	err_free(e);
	e = mapped_open("/", &map);
	assert_int_equal(e->code, EISDIR);
}

static void test_flush(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	cleanup_err struct err *e = NULL;

	assert_non_null(f);
	assert_null(io_flush(f, "x"));
	fputs("text", f);
	e = io_flush(f, "standard output");
	assert_int_equal(e->code, ENOSPC);
	assert_string_equal(e->text, "standard output: write: No space left on device");
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
