/* Files at paths that somebody else chose are opened only when they are what they should be. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/regular.h"
#include "program/object/object.h"

static char folder[] = "/tmp/descry-regular-XXXXXX";
static int dir;

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int drop_folder(void **state)
{
	static const char *const names[] = { "fifo", "link", "file", "device" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir, names[i], 0);
	close(dir);
	return rmdir(folder);
}

static void opens_the_owners_fifo(void **state)
{
	char c = 0;
	int fd;

	(void)state;
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	fd = regular_open_fifo(dir, "fifo", getuid());
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(c, 'x');
	close(fd);
}

static void assert_refused(const char *name, uid_t owner, int error)
{
	errno = 0;
	assert_int_equal(regular_open_fifo(dir, name, owner), -1);
	assert_int_equal(errno, error);
}

static void refuses_anything_else(void **state)
{
	int fd;

	(void)state;
	assert_refused("fifo", getuid() + 1, EPERM);
	assert_int_equal(symlinkat("fifo", dir, "link"), 0);
	assert_refused("link", getuid(), EPERM);
	fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_refused("file", getuid(), EPERM);
	assert_refused("missing", getuid(), ENOENT);
	/* a device that does not exist: an attempt to open it would say ENXIO */
	if (mknodat(dir, "device", S_IFBLK | 0600, makedev(259, 1048575)))
		print_message("note: this user may not make a device\n");
	else
		assert_refused("device", getuid(), EPERM);
}

/* A path that a recording names is opened where it leads to a file, and not where the kernel would
 * make one. */
static void refuses_files_of_the_kernel(void **state)
{
	static const char *const made[] = { "/proc/self/status", "/proc/self/root/proc/self/maps",
					    "/proc/version", "/sys/kernel/uevent_seqnum" };
	struct object *o = NULL;
	struct err *e;
	int fd = regular_open("/proc/self/exe");

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_null(object_open("/proc/self/exe", &o));
	object_free(o);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		if (access(made[i], F_OK))
			continue;
		errno = 0;
		assert_int_equal(regular_open(made[i]), -1);
		assert_int_equal(errno, ENOEXEC);
		e = object_open(made[i], &o);
		assert_non_null(e);
		assert_int_equal(e->code, ENOEXEC);
		assert_non_null(strstr(e->text, "not a regular file"));
		err_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_the_owners_fifo),
		cmocka_unit_test(refuses_anything_else),
		cmocka_unit_test(refuses_files_of_the_kernel),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
