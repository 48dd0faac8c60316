/* The memory that a process's control groups leave it. */
#ifndef DESCRY_BASE_MEMGROUP_H
#define DESCRY_BASE_MEMGROUP_H

#include <stdint.h>
#include <sys/types.h>

/* Returns how many more bytes the groups of a process may have, UINT64_MAX when they have no limit
 * or cannot be read. */
uint64_t memgroup_room(pid_t pid);

#endif
