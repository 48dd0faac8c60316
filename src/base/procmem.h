/* Reads and writes of another process's memory that always end.
 *
 * A page that is registered with userfaultfd(2), or that a FUSE file system serves, comes when its
 * server delivers it. Until then process_vm_readv(2) and /proc/PID/mem wait, and only SIGKILL ends
 * the wait. So a process can hold a page back. Therefore another thread accesses a page that is not
 * in the process's page table (/proc/PID/pagemap), and the caller waits for it PROCMEM_MS at most,
 * or longer while no processor runs the thread. Then the access fails with ETIMEDOUT, and so do all
 * others to such pages of that process until the page comes. Pages in the page table are accessed
 * directly.
 *
 * When a process removes a page between the look and the access, descry waits nevertheless. After
 * PROCMEM_STUCK_MS descry reports this and ends, with exit status 1. A program that embeds the
 * library does not end: after procmem_embed(), another thread makes every access.
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

/* From now on, the calling thread makes no access itself, so that each call ends. A call costs
 * some 10 us more. */
void procmem_embed(void);
/* Like process_vm_readv(2) of one piece: reads up to the first page that cannot be read. `pid` may
 * be a thread's. */
ssize_t procmem_read(pid_t pid, void *buf, size_t n, uint64_t addr);
/* Like pread(2) and pwrite(2) of `mem`, an open /proc/PID/mem of process or thread `pid`. pid 0:
 * the process's page table cannot be read, and the process is trusted. */
ssize_t procmem_pread(pid_t pid, int mem, void *buf, size_t n, uint64_t addr);
ssize_t procmem_pwrite(pid_t pid, int mem, const void *buf, size_t n, uint64_t addr);
/* Like io_read_file() of a file of process `pid` in /proc that the kernel reads from the process's
 * memory: cmdline, environ, auxv. Reads at most PROCMEM_FILE_MAX bytes: more than execve(2) takes
 * by default, but a process can say that its arguments are terabytes (prctl(2), PR_SET_MM). */
enum { PROCMEM_FILE_MAX = 8 << 20 };
struct err *procmem_file(pid_t pid, const char *path, char **ret_text, size_t *ret_len);
/* Returns how long the calling thread and the thread that accesses memory for it have been ready to
 * run without a processor, in ns. 0: the kernel does not count this. The number may fall when the
 * other thread is replaced. */
uint64_t procmem_starved_ns(void);

#endif
