/* Where a graph comes from: a kind of dump file, or a language runtime in a process or core.
 *
 * One file and one row of src/memory/heap/sources.def for each kind. A kind fills the graph that it
 * is given by the functions under "Making a graph" and does not call graph_finish().
 */
#ifndef DESCRY_MEMORY_GRAPH_SOURCE_H
#define DESCRY_MEMORY_GRAPH_SOURCE_H

#include "base/err.h"
#include "memory/graph/graph.h"

struct space;
struct memory_room;
struct runtime_type;

struct heap_source {
	const char *name; /* "hprof": one word, for --json and messages */
	const char *what; /* "Java heap dump (HPROF)" */

	/* Files; NULL: not a kind of file. is_file() sees the file's first bytes, unpacked when it
	 * is gzip; read_file() reads it. An error names the offset and does not name the path. */
	bool (*is_file)(const void *head, size_t n);
	struct err *(*read_file)(const char *path, struct graph *g);

	/* Processes and cores; NULL: not a runtime. `runtime` is the interpreter whose heap it is.
	 * copy_space() reads all memory that read_copy() needs, into `room` as far as that fits; a
	 * process is stopped meanwhile, so that it does nothing else. read_copy() works after the
	 * process was resumed; `s` then only serves what does not change: mapped files, symbols. */
	const struct runtime_type *runtime;
	struct err *(*copy_space)(struct space *s, struct memory_room *room, void **ret);
	struct err *(*read_copy)(void *copy, struct space *s, struct graph *g);
	void (*free_copy)(void *copy);
};

#endif
