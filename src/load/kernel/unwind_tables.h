/* Unwind tables in the kernel: keeps the three maps that d_ustack uses up to date.
 *
 * In: processes, either named (unwind_tables_add) or met by a probe. d_ustack sends a process id
 * through a ring when it does not know the process, or none of its known mappings has an address.
 * Out: filled maps, met processes.
 * Always true: a process's tables are in the maps before its entry refers to them.
 */
#ifndef DESCRY_LOAD_KERNEL_UNWIND_TABLES_H
#define DESCRY_LOAD_KERNEL_UNWIND_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct languages;
struct unwind_tables;

/* languages: takes the interpreters of processes that are added; NULL: none are wanted. */
struct err *unwind_tables_new(struct languages *languages, struct unwind_tables **ret);
void unwind_tables_free(struct unwind_tables *t);
/* The arguments of d_ustack. The last is readable (epoll) when unwind_tables_refresh() has work.
 * Owned by t. */
int unwind_tables_chunks(const struct unwind_tables *t);
int unwind_tables_processes(const struct unwind_tables *t);
int unwind_tables_wanted(const struct unwind_tables *t);
/* Adds the tables of files that are likely to be mapped, known from earlier runs, for at most 50 ms
 * of CPU time (few: 10 ms). Only the first call counts. Without a call, this happens when a target
 * first forks. */
void unwind_tables_preload(struct unwind_tables *t, bool few);
/* Reads pid's mappings now, so that its first stack is right. */
struct err *unwind_tables_add(struct unwind_tables *t, pid_t pid);
/* Does the same for every running process, newest first, for at most half a second. Probes report
 * the other processes later. */
void unwind_tables_add_running(struct unwind_tables *t);
/* Does the work that probes have requested since the last call. Cheap when there is none. Call it
 * whenever records are drained. */
void unwind_tables_refresh(struct unwind_tables *t);
/* Reads the names that were requested since. Called when records have been taken and before they
 * are shown: a walk sends its requests before its record. */
void unwind_tables_learn(struct unwind_tables *t);
/* Calls fn for each process whose first stack was taken since the last call. */
void unwind_tables_met(struct unwind_tables *t, void (*fn)(void *arg, int pid), void *arg);
/* Watches new mappings from now on, so that a library's tables are there soon after it is
 * loaded. unwind_tables_watch_fd() returns readable descriptors, i from 0 on; -1: no more.
 * targets: handles each mapping at once, but only of processes that were added, their children,
 * and met processes. */
void unwind_tables_watch(struct unwind_tables *t, bool targets);
int unwind_tables_watch_fd(const struct unwind_tables *t, uint32_t i);
/* Returns true once when tables had no room, so that some stacks will lack them. */
bool unwind_tables_overflowed(struct unwind_tables *t);
/* Returns the bytes of tables in the kernel. */
uint64_t unwind_tables_bytes(const struct unwind_tables *t);

#endif
