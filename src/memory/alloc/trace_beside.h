/* The files of a recording beside the first one: each process that the first program forks or
 * executes has its own.
 *
 * In: the path of the first file, and processes. Out: new files, and what the first one says of
 * them.
 * Always true: no file that another user has is written, and no link is followed.
 */
#ifndef DESCRY_MEMORY_ALLOC_TRACE_BESIDE_H
#define DESCRY_MEMORY_ALLOC_TRACE_BESIDE_H

#include <sys/types.h>

#include "base/hash.h"
#include "memory/alloc/trace.h"

struct beside {
	pid_t pid, parent;
	uint64_t events, lost;
	const char *path, *command;
};

/* Returns DIR/NAME.PID.dma for DIR/NAME.dma, with a number when the process has such a file, or
 * when another user has. A process may execute any number of programs, so its last number is kept
 * in `numbers` (by pid). dir: the opened DIR, which may get another name meanwhile. */
char *beside_path(struct hash *numbers, int dir, const char *first, pid_t pid);
/* Makes the file with the path's name in the folder. Others may be able to write there: a link to
 * another file is not followed. */
struct err *beside_open(int dir, const char *path, struct alloc_writer **ret);
/* Return what /proc says of a process: its command as one line, "?" if it says nothing; its parent,
 * 0 if it says nothing. */
char *beside_command(pid_t pid);
pid_t beside_parent(pid_t pid);
/* Writes that the file is one beside the first. */
void beside_infos(struct alloc_writer *w, pid_t parent, bool forked, const char *first);
/* Writes to the first file that there is this one. */
void beside_list(struct alloc_writer *first, const struct beside *b);

#endif
