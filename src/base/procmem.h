/* Reads and writes of another process's memory that come to an end.
 *
 * A process can hold a page back: one that is registered with userfaultfd(2), or that a FUSE file
 * system serves, comes when its server likes. process_vm_readv(2) and /proc/PID/mem then wait
 * without end, and no signal but SIGKILL ends them. So a page that is not in the process's page
 * table (/proc/PID/pagemap) is accessed on another thread, which is waited for PROCMEM_MS at most:
 * then the access fails with ETIMEDOUT, and so do all others of that process until the page comes.
 * Pages that are there are accessed directly.
 *
 * A process that takes a page away between that look and the access makes descry wait all the same.
 * After PROCMEM_STUCK_MS of that descry says so and ends, with exit status 1.
 */
#ifndef DESCRY_BASE_PROCMEM_H
#define DESCRY_BASE_PROCMEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

enum {
	PROCMEM_MS = 1000,
	PROCMEM_STUCK_MS = 5000,
	PROCMEM_LEFT = 16, /* threads that wait for pages; no more are started */
};

/* As process_vm_readv(2) of one piece: up to the first page that cannot be read. `pid` may be a
 * thread's. */
ssize_t procmem_read(pid_t pid, void *buf, size_t n, uint64_t addr);
/* As pread(2) and pwrite(2) of `mem`, an open /proc/PID/mem of process or thread `pid`. A pid of 0
 * says that the process may not be looked at: it is trusted. */
ssize_t procmem_pread(pid_t pid, int mem, void *buf, size_t n, uint64_t addr);
ssize_t procmem_pwrite(pid_t pid, int mem, const void *buf, size_t n, uint64_t addr);
/* As io_read_file() of a file of process `pid` in /proc that the kernel reads from the process's
 * memory: cmdline, environ, auxv. */
struct err *procmem_file(pid_t pid, const char *path, char **ret_text, size_t *ret_len);

#endif
