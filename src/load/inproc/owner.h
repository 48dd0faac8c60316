/* Whose a process is. Processes that share memory must be one user's; a stranger's may be hostile. */
#ifndef DESCRY_LOAD_INPROC_OWNER_H
#define DESCRY_LOAD_INPROC_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What decides what a process may do to others. */
struct owner {
	uint32_t uids[4], gids[4]; /* real, effective, saved, of the file system */
	uint64_t caps;             /* permitted */
	uint64_t space;            /* inode of its user name space, 0 not known */
};

/* All zero when it cannot be read. */
struct owner owner_of(pid_t pid);
/* The same ids and name space. */
bool owner_is(const struct owner *a, const struct owner *b);
/* May the process do nothing that this one may not, and is it this one's user's? Then it gains nothing from us. */
bool owner_is_us(pid_t pid);
/* Could this one trace it, and is it not its own? The program may be hostile: it is to be traced from inside only when that is
 * asked for. */
bool owner_is_stranger(pid_t pid);

#endif
