/* Whose a process is. Processes that share memory must be one user's; a stranger's may be hostile. */
#ifndef DESCRY_LOAD_INPROC_OWNER_H
#define DESCRY_LOAD_INPROC_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What decides what a process may do to others. */
struct owner {
	uint32_t uids[4], gids[4]; /* real, effective, saved, of the file system */
	uint64_t caps;             /* permitted; the effective ones are among these */
	uint64_t space;            /* inode of its user name space, 0 not known */
	uint64_t mounts, pids;     /* of its mount and pid name spaces; 0 not known: of a zombie */
	bool hidden;               /* not dumpable: its own user may not trace it */
	bool known;                /* its status could be read */
};

/* All zero when it cannot be read. */
struct owner owner_of(pid_t pid);
/* The same ids, capabilities, user name space and dumpability: each may trace the other as ptrace(2) has it, so that shared
 * memory gives neither of them anything. */
bool owner_is(const struct owner *a, const struct owner *b);
/* Does the process have this one's ids, capabilities and name spaces (user, mount, pid)? Then it gains nothing from us. */
bool owner_is_us(pid_t pid);
/* Was owner_is_us() true of it, and is not any more? False for a process that has ended and been reaped. */
bool owner_has_left(pid_t pid);
/* Is it in another pid name space? False for a process that has ended. */
bool owner_is_contained(pid_t pid);
/* Could this one trace it, and is it not its own? The program may be hostile: it is to be traced from inside only when that is
 * asked for. */
bool owner_is_stranger(pid_t pid);

#endif
