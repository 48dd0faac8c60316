/* Files mapped for reading, which others may cut short at the same time.
 *
 * To read a mapped page that lies behind the file's end raises SIGBUS. The guard puts zeros in
 * place of such pages, up to the end of their mapping, and adds the file to the list of
 * base/changed.h: the reader goes on, and asks afterwards whether what it has read can be believed.
 * That holds for libelf's mappings, too, of which there is no list.
 */
#ifndef DESCRY_BASE_MAPPED_H
#define DESCRY_BASE_MAPPED_H

#include <stddef.h>

#include "base/changed.h"
#include "base/err.h"

/* From now on, as long as nobody puts another handler in its place. Private mappings of files that
 * this process does not execute are guarded; any other SIGBUS ends the process as before. Call it
 * before a library maps files. */
void mapped_guard(void);

struct mapped {
	const void *p; /* "" when the file is empty */
	size_t len;    /* bytes */
	int fd;
	struct file_state state;
};
/* Maps path, guarded. ret is untouched on failure. */
struct err *mapped_open(const char *path, struct mapped *ret);
/* An error that names the file when it was changed since mapped_open(); its bytes are not what was
 * in it at any time then. */
struct err *mapped_check(const struct mapped *m, const char *path);
void mapped_close(struct mapped *m);

#endif
