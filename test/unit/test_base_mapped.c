/* Files that are cut short, or written to, while they are mapped. The mmap() of this program, which
 * libelf uses too, cuts the file named by `victim` right after it has mapped it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "input/stackin/stackin.h"
#include "program/symbol/symbol_private.h"
#include "unit.h"

enum { PAGE = 4096 };

static const char *victim; /* NULL: no file is cut */
static int ncut;

static void *map(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
	struct stat mapped, named;

	if (p != MAP_FAILED && victim && fd >= 0 && !fstat(fd, &mapped) && !stat(victim, &named) &&
	    mapped.st_ino == named.st_ino && mapped.st_dev == named.st_dev && mapped.st_size) {
		assert_int_equal(truncate(victim, 0), 0);
		ncut++;
	}
	return p;
}

/* Both names that the C library has for it, for which <sys/mman.h> has one. */
#define MMAP(name) \
	void *name##_here(void *at, size_t n, int prot, int flags, int fd, \
			  off_t offset) __asm__(#name); \
	void *name##_here(void *at, size_t n, int prot, int flags, int fd, off_t offset) \
	{ \
		return map(at, n, prot, flags, fd, offset); \
	}
MMAP(mmap)
MMAP(mmap64)

/* In /tmp, of these bytes; unlink() and free() it. */
static char *make_file(const void *bytes, size_t n)
{
	char *path = xstrdup("/tmp/test_base_mapped.XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
	return path;
}

static void drop_file(char *path)
{
	unlink(path);
	free(path);
}

static bool is_listed(const char *path)
{
	const char *known;

	for (uint32_t i = 0; (known = changed_path(i)); i++)
		if (!strcmp(known, path))
			return true;
	return false;
}

static void test_cut(void **state)
{
	cleanup_free char *bytes = xcalloc(4, PAGE);
	char *path;
	struct mapped m;
	cleanup_err struct err *e = NULL;

	memset(bytes, 'x', 4 * PAGE);
	path = make_file(bytes, 4 * PAGE);
	assert_null(mapped_open(path, &m));
	assert_int_equal(((const char *)m.p)[3 * PAGE], 'x');
	assert_int_equal(truncate(path, PAGE), 0);
	assert_int_equal(((const volatile char *)m.p)[0], 'x');
	assert_int_equal(((const volatile char *)m.p)[3 * PAGE], 0);
	assert_int_equal(((const volatile char *)m.p)[PAGE], 0);
	assert_true(is_listed(path));
	e = mapped_check(&m, path);
	assert_non_null(e);
	assert_non_null(strstr(e->text, path));
	mapped_close(&m);
	drop_file(path);
}

/* The same length, other bytes. */
static void test_written(void **state)
{
	char *path = make_file("1234", 4);
	struct mapped m;
	cleanup_err struct err *e = NULL;
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };

	assert_null(mapped_open(path, &m));
	assert_null(mapped_check(&m, path));
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	e = mapped_check(&m, path);
	assert_non_null(e);
	mapped_close(&m);
	drop_file(path);
}

/* Faults that are not guarded end the process as usual: in shared memory, and by a signal from a
 * process. */
static void test_others(void **state)
{
	for (int sent = 0; sent < 2; sent++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			signal(SIGBUS, SIG_DFL); /* cmocka catches it */
			mapped_guard();

			char *path = make_file("x", 1);
			int fd = open(path, O_RDWR);
			volatile char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);

			drop_file(path);
			if (sent)
				kill(getpid(), SIGBUS);
			else
				_exit(p[PAGE]);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	}
}

/* perf.data is the input: an error that names it. */
static void test_perf_data(void **state)
{
	cleanup_free char *bytes = xcalloc(16, PAGE);
	struct stackin_options options = { 0 };
	cleanup_err struct err *e = NULL;
	struct stackin in;
	struct stacktree tree;

	memcpy(bytes, "PERFILE2", 8);
	bytes[8] = 104; /* of the header */
	char *path = make_file(bytes, 16 * PAGE);

	stacktree_init(&tree);
	stackin_init(&in, &tree, &options);
	victim = path;
	ncut = 0;
	e = stackin_read(&in, path);
	victim = NULL;
	assert_int_equal(ncut, 1);
	assert_non_null(e);
	assert_non_null(strstr(e->text, path));
	assert_non_null(strstr(e->text, "changed while it was read"));
	stackin_fini(&in);
	stacktree_fini(&tree);
	drop_file(path);
}

__attribute__((noinline)) int mapped_test_function(int x)
{
	return x + getpid();
}

/* Debugging information, read by libdw in libelf's mapping. */
static void test_debug_file(void **state)
{
	cleanup_free char *bytes = NULL;
	size_t n;

	assert_null(io_read_file("/proc/self/exe", &bytes, &n));

	char *path = make_file(bytes, n);
	struct symbols *s = symbols_new();
	struct object *own = symbols_object_at(s, "/proc/self/exe"), *o;
	const struct object_symbol *f = object_find_name(own, "mapped_test_function");
	const struct source_place *places;
	struct symbols_losses losses;

	assert_non_null(f);
	if (!object_source(s, own, f->addr + 4, &places))
		skip();
	o = symbols_object_at(s, path);
	assert_non_null(o);
	victim = path;
	ncut = 0;
	assert_int_equal(object_source(s, o, f->addr + 4, &places), 0);
	victim = NULL;
	assert_true(ncut > 0);
	assert_true(is_listed(path));
	symbols_losses(s, &losses);
	assert_int_equal(losses.changed, 1);
	assert_int_equal(losses.limited, 0);
	/* Others are as they were. */
	assert_true(object_source(s, own, f->addr + 4, &places) > 0);
	symbols_free(s);
	drop_file(path);
}

/* Symbols, which are read with pread(): of a file that was cut short, or written to, after it was
 * opened there are none. */
static void test_symbols(void **state)
{
	cleanup_free char *bytes = NULL;
	size_t n;

	assert_null(io_read_file("/proc/self/exe", &bytes, &n));
	for (int cut = 0; cut < 2; cut++) {
		char *path = make_file(bytes, n);
		struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
		struct object *o;
		uint32_t count;

		assert_null(object_open(path, &o));
		if (cut)
			assert_int_equal(truncate(path, (off_t)n / 2), 0);
		else
			assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		(void)object_symbols(o, &count);
		assert_int_equal(count, 0);
		assert_string_equal(object_changed(o), path);
		assert_true(is_listed(path));
		object_free(o);
		drop_file(path);
	}
}

/* Another process overwrites the NUL of a string that the reader has measured already. */
static void test_last_string(void **state)
{
	char bytes[PAGE];
	struct mapped m;
	char *path;

	memset(bytes, 'x', sizeof(bytes));
	path = make_file(bytes, sizeof(bytes));
	assert_null(mapped_open(path, &m));
	assert_int_equal(strlen(m.p), PAGE);
	mapped_close(&m);
	drop_file(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_string), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_written),     cmocka_unit_test(test_others),
		cmocka_unit_test(test_perf_data),   cmocka_unit_test(test_debug_file),
		cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
