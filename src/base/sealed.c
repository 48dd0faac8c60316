/* Makes memory files that nobody can change any more. See sealed.h. */
#define _GNU_SOURCE
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct err *sealed_file(const char *name, const void *data, size_t size, int *ret_fd)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err *e;
	struct stat st;

	/* A kernel that makes such files without execute permission lets nobody change that. Others
	 * may read: a command's process may belong to another user. */
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size && !fstat(fd, &st) &&
	    !fchmod(fd, st.st_mode & 0555) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		*ret_fd = fd;
		return NULL;
	}
	e = err_errno(errno, "a file in memory: %s", name);
	if (fd >= 0)
		close(fd);
	return e;
}
