/* Reads whole files and flushes streams. */
#define _GNU_SOURCE
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"

enum { READ_START = 4096, DISK_PART = 16 /* so large a part of a disk's room is left */ };

struct err *io_read_fd(int fd, const char *path, size_t most, char **ret_text, size_t *ret_len)
{
	cleanup_free char *buf = NULL;
	size_t len = 0, cap = READ_START;
	struct stat st;
	ssize_t n;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		cap = (size_t)st.st_size + 1;
	cap = cap < most ? cap : most;
	buf = xmalloc(cap + 1);
	while (len < most) {
		n = read(fd, buf + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(errno, "%s: read", path);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == cap) {
			cap = cap < most / 2 ? cap * 2 : most;
			buf = xrealloc(buf, cap + 1);
		}
	}
	buf[len] = '\0';
	*ret_text = buf;
	buf = NULL;
	if (ret_len)
		*ret_len = len;
	return NULL;
}

struct err *io_read_at(int dirfd, const char *path, char **ret_text, size_t *ret_len)
{
	cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	return io_read_fd(fd, path, SIZE_MAX / 2, ret_text, ret_len);
}

struct err *io_read_most(const char *path, size_t most, char **ret_text, size_t *ret_len)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	return io_read_fd(fd, path, most, ret_text, ret_len);
}

struct err *io_read_file(const char *path, char **ret_text, size_t *ret_len)
{
	if (!strcmp(path, "-"))
		return io_read_fd(STDIN_FILENO, "standard input", SIZE_MAX / 2, ret_text, ret_len);
	return io_read_at(AT_FDCWD, path, ret_text, ret_len);
}

/* Returns the errno value of a write that failed some time ago, as far as it shows now. */
static int reason_of(FILE *f)
{
	struct statvfs v;

	if (write(fileno(f), "", 0) < 0)
		return errno;
	return !fstatvfs(fileno(f), &v) && v.f_blocks && !v.f_bavail ? ENOSPC : EIO;
}

bool io_disk_has(int fd, uint64_t n)
{
	struct statvfs s;

	return fstatvfs(fd, &s) ||
	       (uint64_t)s.f_bavail * s.f_frsize / DISK_PART * (DISK_PART - 1) >= n;
}

bool io_write(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

struct err *io_flush(FILE *f, const char *name)
{
	if (fflush(f))
		return err_errno(errno, "%s: write", name);
	if (ferror(f))
		return err_errno(reason_of(f), "%s: write", name);
	return NULL;
}
