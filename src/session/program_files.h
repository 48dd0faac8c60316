/* The files whose code a program maps.
 *
 * In: the mappings of a process. Out: its files, each once, and whether another program maps them
 * all. A process may have 65,530 mappings, of as many files or of one.
 */
#ifndef DESCRY_SESSION_PROGRAM_FILES_H
#define DESCRY_SESSION_PROGRAM_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "program/space/mapping.h"

/* Device and inode. */
struct program_file {
	uint64_t dev, inode;
};

/* Zero is empty. */
struct program_files {
	VEC(struct program_file) v; /* by device and inode */
};

/* Lists the files of executable mappings. */
void program_files_init(struct program_files *f, const struct mappings *maps);
void program_files_fini(struct program_files *f);
/* Returns true when `all` has each file of f. */
bool program_files_cover(const struct program_files *all, const struct program_files *f);

#endif
