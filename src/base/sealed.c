/* Makes memory files that nobody can change any more. See sealed.h. */
#define _GNU_SOURCE
#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

/* RLIMIT_FSIZE also limits files in memory: write(2) beyond it sends SIGXFSZ. */
static struct err *check_limit(const char *name, size_t size)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) || size <= most.rlim_cur)
		return NULL;
	return err_new(EFBIG,
		       "a file in memory: %s: it has %zu bytes, more than a file may have (ulimit "
		       "-f)",
		       name, size);
}

struct err *sealed_file(const char *name, const void *data, size_t size, int *ret_fd)
{
	struct err *e = check_limit(name, size);
	struct stat st;
	int fd;

	if (e)
		return e;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* A kernel that makes such files without execute permission lets nobody change that. Others
	 * may read: a command's process may belong to another user. */
	if (fd >= 0 && io_write(fd, data, size) && !fstat(fd, &st) &&
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
