/* Work in several threads, which all have ended when the call returns.
 *
 * Always true: the threads have all signals blocked, so that handlers execute where they did
 * before.
 */
#ifndef DESCRY_BASE_PARALLEL_H
#define DESCRY_BASE_PARALLEL_H

enum { PARALLEL_MAX = 8 };

/* Returns the number of processors that this thread may use, at most PARALLEL_MAX. */
unsigned parallel_threads(void);
/* Calls fn(arg, 0) to fn(arg, n - 1), each in a thread of its own, n <= PARALLEL_MAX. Where there
 * can be no thread, the calls come one after the other. */
void parallel_run(void (*fn)(void *arg, unsigned part), void *arg, unsigned n);

#endif
