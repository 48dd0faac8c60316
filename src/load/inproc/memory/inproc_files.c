/* Makes and seals the memory files that traced processes map. */
#define _GNU_SOURCE
#include "load/inproc/memory/inproc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "wire/inproc.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
enum { EXECUTABLE = 0x10 /* MFD_EXEC, Linux 6.3 */ };
enum { SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

int file_new(const char *name, uint64_t size)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | EXECUTABLE), code;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0 || !ftruncate(fd, (off_t)size))
		return fd;
	code = errno;
	close(fd);
	errno = code;
	return -1;
}

/* Adds the seals and removes the permission bits, so that a process with a read-only descriptor
 * cannot give the file a mode that permits writing. */
static struct err *seal(int fd, int seals)
{
	if (fcntl(fd, F_ADD_SEALS, seals) || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) || fchmod(fd, 0))
		return err_errno(errno, "sealing a memory file");
	return NULL;
}

struct err *file_seal(int *fd, bool *ret_unsealed)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", *fd);
	int readable = open(path, O_RDONLY | O_CLOEXEC);
	struct err *err;

	if (readable < 0)
		return err_errno(errno, "opening a memory file for reading");
	err = seal(*fd, SIZE_SEALS | F_SEAL_FUTURE_WRITE);
	if (err && err->code == EINVAL) {
		err_free(err);
		*ret_unsealed = true;
		err = seal(*fd, SIZE_SEALS);
	}
	close(*fd);
	*fd = readable;
	return err;
}

static struct err *create(struct inproc_file *f, const char *name, uint64_t size)
{
	struct stat st;

	f->fd = file_new(name, size);
	if (f->fd < 0 || fstat(f->fd, &st))
		return err_errno(errno, "memfd_create");
	f->inode = st.st_ino;
	return NULL;
}

struct err *files_create(struct inproc_files *f, uint64_t code, uint64_t facts, uint64_t shared)
{
	return create(&f->code, WIRE_MEMFD_CODE, code) ?:
		create(&f->facts, WIRE_MEMFD_FACTS, facts) ?:
		create(&f->shared, WIRE_MEMFD_SHARED, shared);
}

struct err *files_seal(struct inproc_files *f, uint64_t shared)
{
	struct err *err = file_seal(&f->code.fd, &f->unsealed)
				  ?: file_seal(&f->facts.fd, &f->unsealed);

	if (!err && ftruncate(f->shared.fd, (off_t)shared))
		err = err_errno(errno, "the size of shared memory");
	return err ?: seal(f->shared.fd, SIZE_SEALS);
}

void files_close(struct inproc_files *f)
{
	struct inproc_file *all[] = { &f->code, &f->facts, &f->shared };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i]->fd >= 0)
			close(all[i]->fd);
		all[i]->fd = -1;
	}
}
