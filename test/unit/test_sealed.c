#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sealed.h"
#include "unit.h"

/* Nobody changes a sealed file, neither by its descriptor nor by one that is opened anew. */
static void stays_as_it_is(void **state)
{
	char path[40], c;
	struct stat st;
	int fd;

	assert_null(sealed_file("test-sealed", "text", 4, &fd));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (int again = 0; again < 2; again++) {
		int w = again ? open(path, O_RDWR) : fd;

		if (w < 0) /* without root's rights */
			continue;
		assert_int_equal(pwrite(w, "x", 1, 0), -1);
		assert_int_equal(ftruncate(w, 0), -1);
		assert_int_equal(ftruncate(w, 5000), -1);
		assert_ptr_equal(mmap(NULL, 4, PROT_WRITE, MAP_SHARED, w, 0), MAP_FAILED);
		if (again)
			close(w);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0222, 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(pread(fd, &c, 1, 0), 1);
	assert_int_equal(c, 't');
	close(fd);
}

/* The dynamic linker maps it so. */
static void can_be_mapped(void **state)
{
	const char *p;
	int fd;

	assert_null(sealed_file("test-sealed", "text", 4, &fd));
	p = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_memory_equal(p, "text", 4);
	p = mmap(NULL, 4, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
}

/* The limit of the size of files is named, and no signal comes. */
static void is_not_too_large(void **state)
{
	struct rlimit limit, few;
	struct err *e;
	char text[64];
	int fd;

	memset(text, 'x', sizeof(text));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	few = limit;
	few.rlim_cur = sizeof(text) - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	e = sealed_file("test-sealed", text, sizeof(text), &fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(e);
	assert_int_equal(e->code, EFBIG);
	assert_non_null(strstr(e->text, "ulimit -f"));
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays_as_it_is),
		cmocka_unit_test(can_be_mapped),
		cmocka_unit_test(is_not_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
