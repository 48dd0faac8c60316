/* System calls that a SIGKILL of this process must not cut short. A child that shares this
 * process's memory and descriptors makes them. The SIGKILL ends this process; the child completes
 * the call, and then its exit closes the descriptors.
 *
 *	uprobes   the kernel restores the text of a traced program only in a thread that has no
 *	          SIGKILL pending. Else breakpoints and raised semaphores stay in the program.
 *
 * The child is in a session of its own, so that a signal to the process group does not reach it. A
 * signal to the whole cgroup, and the kernel when it has no memory left, reach it too.
 */
#ifndef DESCRY_BASE_SHIELD_H
#define DESCRY_BASE_SHIELD_H

#include <stdint.h>

/* Makes the system call, and returns as syscall(2) does. Where there can be no child, the caller
 * makes the call itself. */
long shield_syscall(long number, long a, long b, long c, long d, long e);
/* Closes the descriptors; those below 0 are left out. */
void shield_close(const int *fds, uint32_t n);

#endif
