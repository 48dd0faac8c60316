/* Unwind tables in the kernel: the three maps d_ustack walks by, kept up to date.
 *
 * In: processes, named (unwind_tables_add) or met by a probe: d_ustack sends the process id of one
 * it does not know, or that has an address in no mapping it knows, through a ring. Out: maps
 * filled, processes met.
 * Always true: a process's tables are in the maps before its entry refers to them.
 */
#ifndef DESCRY_LOAD_KERNEL_UNWIND_H
#define DESCRY_LOAD_KERNEL_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct unwind_tables;

struct err *unwind_tables_new(struct unwind_tables **ret);
void unwind_tables_free(struct unwind_tables *t);
/* The arguments of d_ustack. The last is readable (epoll) when there is something to refresh. Owned
 * by t. */
int unwind_tables_chunks(const struct unwind_tables *t);
int unwind_tables_processes(const struct unwind_tables *t);
int unwind_tables_wanted(const struct unwind_tables *t);
/* Puts the tables of files that are likely to be mapped: those of the runs before, as many as 50 ms
 * of CPU time are enough for; few: 10 ms. The first call counts. Where nobody calls it, it is done
 * for the first process that a target forks. */
void unwind_tables_preload(struct unwind_tables *t, bool few);
/* Reads pid's mappings now, so that its first stack is right. */
struct err *unwind_tables_add(struct unwind_tables *t, pid_t pid);
/* The same for every running process, newest first, as many as half a second is enough for: the
 * others follow when met. */
void unwind_tables_add_running(struct unwind_tables *t);
/* Does what the probes asked for since the last call; cheap when they did not. Call it whenever
 * records are drained. */
void unwind_tables_refresh(struct unwind_tables *t);
/* Calls fn for each process of which a first stack was taken since the last call. */
void unwind_tables_met(struct unwind_tables *t, void (*fn)(void *arg, int pid), void *arg);
/* Watches what processes map from now on: the tables of a library are there when it has hardly been
 * loaded. Readable descriptors, i from 0 on; -1: no more. targets: at each mapping, not only when
 * many have gathered, but only of processes added, of their children and of those met. */
void unwind_tables_watch(struct unwind_tables *t, bool targets);
int unwind_tables_watch_fd(const struct unwind_tables *t, uint32_t i);
/* Some stacks will be without tables for want of room; true once. */
bool unwind_tables_overflowed(struct unwind_tables *t);
/* Bytes of tables in the kernel. */
uint64_t unwind_tables_bytes(const struct unwind_tables *t);

#endif
