/* Threads that are ready to run while no processor is free for them.
 *
 * In: a thread's number. Out: sums in ns, as the scheduler counts them (/proc/TID/schedstat), and
 * its state now. A limit of time that is meant for another process takes such times off, because a
 * busy machine is not that process's fault. */
#ifndef DESCRY_BASE_STARVED_H
#define DESCRY_BASE_STARVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns how long the thread was ready and did not run, up to the last time that it ran. 0: it has
 * ended, or the kernel does not count this. */
uint64_t starved_ns(pid_t tid);
/* Returns how long the thread has run. */
uint64_t starved_ran_ns(pid_t tid);
/* Returns true when the thread runs, or would run if a processor were free for it. */
bool starved_is_ready(pid_t tid);

#endif
