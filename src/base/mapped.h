/* Files mapped for reading, which others may truncate at the same time.
 *
 * A read of a mapped page behind the file's end raises SIGBUS. The guard puts zeros in place of
 * such pages, up to the end of their mapping, and adds the file to the list of base/changed.h. The
 * reader continues, and checks afterwards whether the file changed. The guard also covers the
 * mappings that libelf makes. */
#ifndef DESCRY_BASE_MAPPED_H
#define DESCRY_BASE_MAPPED_H

#include <stddef.h>

#include "base/changed.h"
#include "base/err.h"

/* Installs the guard until some code installs another handler. The guard covers private mappings of
 * files that this process does not execute. Any other SIGBUS ends the process as before. Call it
 * before a library maps files. */
void mapped_guard(void);

struct mapped {
	/* "" when the file is empty. Zeros follow it: a string of a file that others write to
	 * meanwhile ends in them at the latest. */
	const void *p;
	size_t len; /* bytes */
	int fd;
	struct file_state state;
};
/* Maps path, guarded. Leaves ret untouched on failure. */
struct err *mapped_open(const char *path, struct mapped *ret);
/* Returns an error that names the file when it has changed since mapped_open(). The bytes read may
 * then never have been in the file at one time. */
struct err *mapped_check(const struct mapped *m, const char *path);
void mapped_close(struct mapped *m);

#endif
