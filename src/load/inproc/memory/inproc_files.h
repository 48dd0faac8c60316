/* Memory files, as traced processes get them.
 *
 * Always true: what a process must not write is sealed before it gets a descriptor, and the
 * descriptor is read-only. No file has permission bits, so that none is opened anew through /proc
 * but by who may do all; none changes its size.
 */
#ifndef DESCRY_LOAD_INPROC_FILES_H
#define DESCRY_LOAD_INPROC_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A descriptor and the inode, which tells it from another tracer's. */
struct inproc_file {
	int fd; /* -1: none */
	uint64_t inode;
};
struct inproc_files {
	struct inproc_file code, facts, shared;
	bool unsealed; /* the kernel has no F_SEAL_FUTURE_WRITE (before Linux 5.1) */
};

/* Sets errno. */
int file_new(const char *name, uint64_t size);
/* Nobody can map or open it for writing from now on; mappings that are there go on. *fd becomes a
 * read-only descriptor. *ret_unsealed: set when the kernel cannot seal it. */
struct err *file_seal(int *fd, bool *ret_unsealed);

/* Writable, not yet sealed. */
struct err *files_create(struct inproc_files *f, uint64_t code, uint64_t facts, uint64_t shared);
/* When all is mapped here: descriptors of code and facts become read-only. The shared file gets its
 * size. */
struct err *files_seal(struct inproc_files *f, uint64_t shared);
void files_close(struct inproc_files *f);

#endif
