/* Memory files that traced processes map.
 *
 * Always true: memory that a process must not write is sealed before the process gets a descriptor,
 * and the descriptor is read-only. No file has permission bits, so only a process with all rights
 * can open one anew through /proc. No file changes its size.
 */
#ifndef DESCRY_LOAD_INPROC_FILES_H
#define DESCRY_LOAD_INPROC_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A descriptor, and the inode, which distinguishes the file from another tracer's. */
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
/* Seals the file: from now on no process can map it or open it for writing. Existing mappings keep
 * their rights. *fd becomes a read-only descriptor. Sets *ret_unsealed when the kernel cannot seal
 * the file. */
struct err *file_seal(int *fd, bool *ret_unsealed);

/* Creates the files, writable and not yet sealed. */
struct err *files_create(struct inproc_files *f, uint64_t code, uint64_t facts, uint64_t shared);
/* Makes the descriptors of code and facts read-only, and fixes the size of the shared file. Call it
 * when all of them are mapped here. */
struct err *files_seal(struct inproc_files *f, uint64_t shared);
void files_close(struct inproc_files *f);

#endif
