/* The stacks of leaked blocks, by a recording of the process (`descry leaks -r`). */
#ifndef DESCRY_MEMORY_ALLOC_LEAK_STACKS_H
#define DESCRY_MEMORY_ALLOC_LEAK_STACKS_H

#include "memory/leaks/leaks.h"

/* Sets `stack` of each leaked block of process `pid` that lives at the end of the recording in a
 * file. The recording may still be going on. pid 0: not known. EINVAL: it is of another process. */
struct err *leak_stacks(const char *path, pid_t pid, struct leaks *l);

#endif
