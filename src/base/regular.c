/* Opens regular files without an effect on others. See regular.h. */
#define _GNU_SOURCE
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/mem.h"

/* Filesystems whose files the kernel makes when they are read. */
static const uint32_t made[] = {
	PROC_SUPER_MAGIC,
	SYSFS_MAGIC,
	DEBUGFS_MAGIC,
	TRACEFS_MAGIC,
	SECURITYFS_MAGIC,
	PSTOREFS_MAGIC,
	EFIVARFS_MAGIC,
	BPF_FS_MAGIC,
	BINFMTFS_MAGIC,
	SELINUX_MAGIC,
	SMACK_MAGIC,
	CGROUP_SUPER_MAGIC,
	CGROUP2_SUPER_MAGIC,
	NSFS_MAGIC,
	RDTGROUP_SUPER_MAGIC,
	XENFS_SUPER_MAGIC,
	0x62656570 /* configfs */,
};

static bool is_made(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		if ((uint32_t)fs.f_type == made[i])
			return true;
	return false;
}

int regular_open(const char *path)
{
	/* A descriptor of this kind names the file and does not open it. */
	cleanup_close int at = open(path, O_PATH | O_CLOEXEC);
	char link[32];
	struct stat st;

	if (at < 0 || fstat(at, &st))
		return -1;
	if (!S_ISREG(st.st_mode) || is_made(at)) {
		errno = ENOEXEC;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	/* O_NONBLOCK: another process may hold a lease on the file. */
	return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int regular_open_fifo(int dir, const char *name, uid_t owner)
{
	cleanup_close int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[32];
	struct stat st;

	if (at < 0 || fstat(at, &st))
		return -1;
	if (!S_ISFIFO(st.st_mode) || st.st_uid != owner) {
		errno = EPERM;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	return open(link, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

char *regular_read(int fd, size_t most, size_t *ret_len)
{
	char *text = xmalloc(most + 1);
	size_t len = 0;

	while (len < most) {
		ssize_t n = read(fd, text + len, most - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	*ret_len = len;
	return text;
}
