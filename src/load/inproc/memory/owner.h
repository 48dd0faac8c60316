/* The rights of a process. Processes that share memory must have equal rights, because another
 * user's process may be hostile. */
#ifndef DESCRY_LOAD_INPROC_OWNER_H
#define DESCRY_LOAD_INPROC_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { OWNER_LABEL = 256 };

/* The facts that decide what a process may do to others. */
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
	struct owner_limits {
		/* limits that the process has put on itself, or that were put on it, beyond its
		 * user's rights */
		uint32_t seccomp, filters; /* mode; number of filters, 0 before Linux 5.9 */
		uint32_t no_new_privs;
		char label[OWNER_LABEL]; /* of its security module: attr/current of proc(5), "" none */
	} limits;
};

/* Returns the owner of a process, all zero when it cannot be read. */
struct owner owner_of(pid_t pid);
/* Returns true for the same ids, groups, capabilities, namespaces and dumpability. Each of the two
 * processes may then trace the other, and has no other rights. */
bool owner_is_like(const struct owner *a, const struct owner *b);
/* Returns true when process b may have memory that a can write. It must be like a and have no more
 * rights: at least as many seccomp filters, no_new_privs if a has it, and the same security
 * label. */
bool owner_may_share(const struct owner *a, const struct owner *b);
/* Returns true when the process is root or has capabilities. */
bool owner_has_privileges(pid_t pid);
/* Returns true when descry is root or has capabilities. A process with the same rights may then do
 * everything that descry may. */
bool owner_is_privileged(void);
/* Returns true when the process has descry's ids, groups, capabilities and namespaces (user, mount,
 * pid), and no more limits. It then gains nothing from descry. */
bool owner_is_us(pid_t pid);
/* Returns true when owner_is_us() held for the process that began at that time (procdir_start()),
 * and does not hold any more. Returns false for a process that has been reaped. */
bool owner_has_left(pid_t pid, uint64_t started);
/* Returns true when the process is in another pid namespace, and false when it has ended. */
bool owner_is_contained(pid_t pid);
/* Returns true when the process could trace this one, and belongs to another user or is in a
 * container. Its program may be hostile, so descry traces it from inside only by an explicit
 * option. */
bool owner_is_stranger(pid_t pid);
/* Returns true for a process whose address space is limited, so that descry's mappings could make
 * its own fail (RLIMIT_AS, RLIMIT_DATA). */
bool owner_is_short_of_room(pid_t pid);

#endif
