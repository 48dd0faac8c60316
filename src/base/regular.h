/* Opens files at paths that someone else chose: a core file, a program's headers. */
#ifndef DESCRY_BASE_REGULAR_H
#define DESCRY_BASE_REGULAR_H

#include <stddef.h>
#include <sys/types.h>

/* Opens a regular file for reading. Returns -1 for anything else, which it does not open: the open
 * of a FIFO waits for ever, that of a device may have an effect, and a read of /proc/kmsg takes
 * lines from another reader. So it also refuses the files of /proc, /sys and their like, by their
 * filesystem: a path or a link to them may look like any other. /proc/PID/exe leads to a file of
 * another filesystem, which is opened. On failure sets errno, ENOEXEC for what it refuses. */
int regular_open(const char *path);
/* Opens the owner's FIFO `name` of the folder `dir`, with both directions, so that the open waits
 * for no reader and the reader has a writer. Returns -1 and sets errno for anything else, which it
 * does not open: root of a container can put a device there that only this process may open. */
int regular_open_fifo(int dir, const char *name, uid_t owner);
/* Reads at most the next `most` bytes of a file, which may grow meanwhile. The text is
 * NUL-terminated. The caller frees it. */
char *regular_read(int fd, size_t most, size_t *ret_len);

#endif
