/* Limits of this process (setrlimit(2)), and those that programs get which it starts.
 *
 * Open files (RLIMIT_NOFILE): tracing a whole system takes many thousand. Programs that descry
 * starts get the original limit, because select(2) handles at most 1024.
 *
 * Memory (RLIMIT_DATA: writable memory of its own, in bytes): no file and no traced process can
 * make descry take the memory that the machine needs. An allocation beyond the limit fails, and
 * descry ends with a message (base/mem.h).
 */
#ifndef DESCRY_BASE_LIMITS_H
#define DESCRY_BASE_LIMITS_H

#include <stdint.h>

/* Raises the limit of open files to the hard limit. */
void limits_raise_files(void);
/* Lets this process take seven eighths of the memory that is available now, beside what it has. A
 * lower limit that the user has set stays. */
void limits_hold_memory(void);
/* Adds bytes to the limit (or takes them from it again, below 0) for addresses that are reserved
 * writable, and of which the caller writes only pages that it has counted: a copy of a process's
 * mapping of terabytes that has few pages. Below 0 also for memory that the limit does not count:
 * pages that this process makes in a file in memory. */
void limits_reserve(int64_t bytes);
/* Restores the original limits, in a child (base/child.h). Async-signal-safe. Open files stay
 * open. */
void limits_restore(void);

#endif
