/* The table of heap sources, and the opening of a heap by it (`descry heap`).
 *
 * In: a file, or the address space of a process or core. Out: a finished graph.
 */
#ifndef DESCRY_MEMORY_HEAP_HEAP_H
#define DESCRY_MEMORY_HEAP_HEAP_H

#include "memory/graph/source.h"

#define SOURCE(name) extern const struct heap_source heap_source_##name;
#include "memory/heap/sources.def"
#undef SOURCE

/* Reads a dump file. *ret_source is the kind that it is of. ENOEXEC: it is of no known kind. */
struct err *heap_read_file(const char *path, const struct graph_wanted *w, struct graph **ret,
			   const struct heap_source **ret_source);

/* Reads the heap in an address space by the first source whose runtime runs there. `stop` and
 * `resume` enclose the copying; NULL: nothing needs to be stopped (a core). ENOENT: no known
 * runtime runs in it. */
struct heap_pause {
	struct err *(*stop)(void *arg);
	struct err *(*resume)(void *arg);
	void *arg;
	uint64_t ns; /* set: as long was the process stopped */
};
struct err *heap_read_space(struct space *s, struct heap_pause *p, const struct graph_wanted *w,
			    struct graph **ret, const struct heap_source **ret_source);

#endif
