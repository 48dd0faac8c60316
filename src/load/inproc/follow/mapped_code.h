/* The executable mappings of a process, by their files.
 *
 * In: a process. Out: for a file, where its code is mapped. A process may have 65,530 mappings, and
 * they are looked up for each module a few times a second: each file is looked at once.
 */
#ifndef DESCRY_LOAD_INPROC_FOLLOW_MAPPED_CODE_H
#define DESCRY_LOAD_INPROC_FOLLOW_MAPPED_CODE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct mapped_code {
	uint64_t dev, ino; /* as stat(2) has them */
	uint64_t lo, hi, offset;
};

/* Zero is empty. */
struct mapped_codes {
	VEC(struct mapped_code) v; /* by file, then by address */
	uint32_t files;            /* stat(2) was called so often */
};

struct err *mapped_codes_read(struct mapped_codes *c, pid_t pid);
void mapped_codes_fini(struct mapped_codes *c);
/* Returns the mappings of a file, by address. */
const struct mapped_code *mapped_codes_of(const struct mapped_codes *c, uint64_t dev,
					  uint64_t inode, uint32_t *ret_n);

#endif
