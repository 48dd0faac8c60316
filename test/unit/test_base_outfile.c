/* Files that descry makes: no link is followed at a name of its own, no name is used twice, and a
 * folder is one that nobody else can exchange. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/outfile.h"

enum { STRANGER = 65534 };

static char top[] = "/tmp/descry-outfile-XXXXXX";
static int folder;

static int begin(void **state)
{
	if (!mkdtemp(top))
		return -1;
	folder = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0;
}

static void empty(int dir)
{
	DIR *d = fdopendir(dup(dir));

	rewinddir(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dir, e->d_name, 0)) {
			int sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

			empty(sub);
			close(sub);
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
		}
	}
	closedir(d);
}

static int clear(void **state)
{
	empty(folder);
	return 0;
}

static int end(void **state)
{
	close(folder);
	return rmdir(top);
}

static void put(const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(const char *name, const char *text, mode_t mode)
{
	char got[64] = "";
	struct stat st;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
	if (mode)
		assert_int_equal(st.st_mode & 07777, mode);
	close(fd);
}

static uint32_t count(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	uint32_t n = 0;

	for (struct dirent *e; (e = readdir(d));)
		n += *e->d_name != '.';
	closedir(d);
	return n;
}

static void a_name_of_its_own_is_new(void **state)
{
	int fd;

	put("victim", "kept");
	assert_int_equal(symlinkat("victim", folder, "link"), 0);
	assert_int_equal(symlinkat("nowhere", folder, "dangling"), 0);
	assert_int_equal(outfile_new(folder, "victim", OUTFILE_PRIVATE), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(outfile_new(folder, "link", OUTFILE_PRIVATE), -1);
	assert_int_equal(outfile_new(folder, "dangling", OUTFILE_PRIVATE), -1);
	assert_int_equal(outfile_update(folder, "link", OUTFILE_PRIVATE, true), -1);
	assert_int_equal(outfile_update(folder, "none", OUTFILE_PRIVATE, false), -1);
	fd = outfile_new(folder, "new", OUTFILE_PRIVATE);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	expect("new", "", 0600);
	expect("victim", "kept", 0644);
}

static void the_users_file_is_written_anew(void **state)
{
	cleanup_free char *path = xasprintf("%s/out", top);
	mode_t before = umask(022);
	int fd = outfile_open(path, OUTFILE_PRIVATE);

	assert_int_equal(write(fd, "memory", 6), 6);
	close(fd);
	expect("out", "memory", 0600);
	fd = outfile_append(path, OUTFILE_SHARED);
	assert_int_equal(write(fd, "!", 1), 1);
	close(fd);
	expect("out", "memory!", 0600);
	fd = outfile_open(path, OUTFILE_SHARED);
	close(fd);
	expect("out", "", 0600);
	unlinkat(folder, "out", 0);
	fd = outfile_open(path, OUTFILE_SHARED);
	close(fd);
	expect("out", "", 0644);
	umask(before);
}

static void a_file_without_a_name(void **state)
{
	int fd = outfile_unnamed(top);
	struct stat st;

	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count(folder), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(outfile_unnamed("/nowhere"), -1);
	assert_int_equal(errno, ENOENT);
	fd = outfile_unnamed("/proc/self"); /* it takes no files */
	assert_int_equal(fd, -1);
}

static void a_file_is_replaced_whole(void **state)
{
	mode_t before = umask(077);
	struct outfile f;

	put("kept", "old");
	assert_true(outfile_begin(&f, folder, "kept", 0644));
	assert_int_equal(write(f.fd, "ne", 2), 2);
	expect("kept", "old", 0);
	assert_int_equal(count(folder), 2);
	assert_int_equal(write(f.fd, "w", 1), 1);
	assert_true(outfile_end(&f, "kept", true));
	expect("kept", "new", 0644);
	assert_int_equal(count(folder), 1);
	/* given up */
	assert_true(outfile_begin(&f, folder, "kept", 0644));
	errno = ENOSPC;
	assert_false(outfile_end(&f, "kept", false));
	assert_int_equal(errno, ENOSPC);
	expect("kept", "new", 0644);
	assert_int_equal(count(folder), 1);
	/* it cannot get the name */
	assert_int_equal(mkdirat(folder, "taken", 0700), 0);
	assert_true(outfile_begin(&f, folder, "taken", 0644));
	assert_false(outfile_end(&f, "taken", true));
	assert_int_equal(errno, EISDIR);
	assert_int_equal(count(folder), 2);
	umask(before);
}

/* The folder gets another name while the file is written, and a link has its name. */
static void a_folder_is_exchanged(void **state)
{
	cleanup_free char *path = xasprintf("%s/sub/file", top);
	struct outfile f;
	int dir;

	assert_int_equal(mkdirat(folder, "sub", 0700), 0);
	assert_int_equal(mkdirat(folder, "victim", 0700), 0);
	put("victim/file", "kept");
	dir = outfile_folder(path);
	assert_true(dir >= 0);
	assert_string_equal(outfile_name(path), "file");
	assert_true(outfile_begin(&f, dir, "file", 0600));
	assert_int_equal(renameat(folder, "sub", folder, "moved"), 0);
	assert_int_equal(symlinkat("victim", folder, "sub"), 0);
	assert_true(outfile_end(&f, "file", true));
	expect("moved/file", "", 0600);
	expect("victim/file", "kept", 0644);
	close(dir);
	dir = openat(folder, "victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(count(dir), 1);
	close(dir);
}

static void the_owner_stays(void **state)
{
	struct stat other;
	struct outfile f;

	if (geteuid())
		skip();
	put("file", "");
	assert_int_equal(fchownat(folder, "file", STRANGER, STRANGER, 0), 0);
	assert_int_equal(fchmodat(folder, "file", 04775, 0), 0);
	assert_int_equal(fstatat(folder, "file", &other, 0), 0);
	assert_true(outfile_begin(&f, folder, "file", 0600));
	assert_true(outfile_like(&f, &other));
	assert_true(outfile_end(&f, "file", true));
	expect("file", "", 0775);
	assert_int_equal(fstatat(folder, "file", &other, 0), 0);
	assert_int_equal(other.st_uid, STRANGER);
}

static int own(const char *name, bool make)
{
	cleanup_free char *path = xasprintf("%s/%s", top, name);
	int fd = outfile_own_folder(path, make), error = errno;

	if (fd < 0)
		return error;
	close(fd);
	return 0;
}

static void a_folder_of_its_own(void **state)
{
	assert_int_equal(own("a/b", false), ENOENT);
	assert_int_equal(own("a/b/c", true), ENOENT); /* only two parts are made */
	assert_int_equal(own("a/b", true), 0);
	assert_int_equal(own("a//b/", false), 0);
	assert_int_equal(fchmodat(folder, "a/b", 0777, 0), 0);
	assert_int_equal(own("a/b", false), EACCES);
	assert_int_equal(fchmodat(folder, "a/b", 0700, 0), 0);
	put("a/file", "");
	assert_int_equal(own("a/file", true), ENOTDIR);
	assert_int_equal(symlinkat("b", folder, "a/link"), 0);
	assert_int_equal(own("a/link", true), ENOTDIR);
	/* links in front of the last part are followed, also ones that go up or begin anew */
	assert_int_equal(mkdirat(folder, "a/b/c", 0700), 0);
	assert_int_equal(own("a/link/c", false), 0);
	assert_int_equal(symlinkat("../a/link", folder, "a/up"), 0);
	assert_int_equal(own("a/up/c", false), 0);
	assert_int_equal(symlinkat(top, folder, "a/anew"), 0);
	assert_int_equal(own("a/anew/a/b", false), 0);
	assert_int_equal(symlinkat("loop", folder, "a/loop"), 0);
	assert_int_equal(own("a/loop/c", false), ELOOP);
}

static void a_strangers_folder(void **state)
{
	if (geteuid())
		skip();
	assert_int_equal(mkdirat(folder, "theirs", 0755), 0);
	assert_int_equal(mkdirat(folder, "theirs/descry", 0755), 0);
	assert_int_equal(own("theirs/descry", true), 0);
	assert_int_equal(fchownat(folder, "theirs", STRANGER, -1, 0), 0);
	assert_int_equal(own("theirs/descry", true), EPERM);
	assert_int_equal(own("theirs", true), EACCES);
	/* others may write above it */
	assert_int_equal(fchownat(folder, "theirs", 0, -1, 0), 0);
	assert_int_equal(fchmodat(folder, "theirs", 0777, 0), 0);
	assert_int_equal(own("theirs/descry", true), EPERM);
	assert_int_equal(fchmodat(folder, "theirs", 01777, 0), 0);
	assert_int_equal(own("theirs/descry", true), 0);
	/* a link of theirs leads to it */
	assert_int_equal(symlinkat("theirs", folder, "link"), 0);
	assert_int_equal(own("link/descry", true), 0);
	assert_int_equal(fchownat(folder, "link", STRANGER, -1, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(own("link/descry", true), EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_name_of_its_own_is_new, clear),
		cmocka_unit_test_teardown(the_users_file_is_written_anew, clear),
		cmocka_unit_test_teardown(a_file_without_a_name, clear),
		cmocka_unit_test_teardown(a_file_is_replaced_whole, clear),
		cmocka_unit_test_teardown(a_folder_is_exchanged, clear),
		cmocka_unit_test_teardown(the_owner_stays, clear),
		cmocka_unit_test_teardown(a_folder_of_its_own, clear),
		cmocka_unit_test_teardown(a_strangers_folder, clear),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
