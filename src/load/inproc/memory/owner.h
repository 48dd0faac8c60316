/* Whose a process is. Processes that share memory must be one user's; a stranger's may be
 * hostile. */
#ifndef DESCRY_LOAD_INPROC_OWNER_H
#define DESCRY_LOAD_INPROC_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { OWNER_LABEL = 256 };

/* What decides what a process may do to others. */
struct owner {
	uint32_t uids[4], gids[4]; /* real, effective, saved, of the file system */
	uint64_t caps;             /* permitted; the effective ones are among these */
	uint64_t caps_to_gain[3];  /* by execve(2): inheritable, bounding set, ambient */
	uint64_t groups;           /* hash of the supplementary groups, in the kernel's order */
	uint64_t space;            /* inode of its user name space, 0 not known */
	uint64_t mounts, pids;     /* of its mount and pid name spaces; 0 not known: of a zombie */
	bool hidden;               /* not dumpable: its own user may not trace it */
	bool known;                /* its status could be read */
	bool ended;                /* a zombie */
	struct owner_limits { /* what it has taken on itself, or was given, beyond its user's rights */
		uint32_t seccomp, filters; /* mode; number of filters, 0 before Linux 5.9 */
		uint32_t no_new_privs;
		char label[OWNER_LABEL]; /* of its security module: attr/current of proc(5), "" none */
	} limits;
};

/* All zero when it cannot be read. */
struct owner owner_of(pid_t pid);
/* The same ids, groups, capabilities, name spaces and dumpability: each may trace the other, and do
 * no more than the other. */
bool owner_is_like(const struct owner *a, const struct owner *b);
/* May the process b have memory that a can write? It must be like a, and have no more rights: as
 * many seccomp filters, at least, no_new_privs if a has, the same security label. */
bool owner_may_share(const struct owner *a, const struct owner *b);
/* Is the process root, or has it capabilities? */
bool owner_has_privileges(pid_t pid);
/* Is descry root, or has it capabilities? Then a process of nobody else's may do all that descry
 * may. */
bool owner_is_privileged(void);
/* Does the process have this one's ids, groups, capabilities and name spaces (user, mount, pid),
 * and no more limits? Then it gains nothing from us. */
bool owner_is_us(pid_t pid);
/* Was owner_is_us() true of the process that began at that time (procdir_start()), and is not any
 * more? False for one that has been reaped. */
bool owner_has_left(pid_t pid, uint64_t started);
/* Is it in another pid name space? False for a process that has ended. */
bool owner_is_contained(pid_t pid);
/* Could this one trace it, and is it another user's, or in a container? The program may be hostile:
 * it is to be traced from inside only when that is asked for. */
bool owner_is_stranger(pid_t pid);

#endif
