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
struct memory_copy;
struct runtime_type;

struct heap_source {
	const char *name; /* "hprof": one word, for --json and messages */
	const char *what; /* "Java heap dump (HPROF)" */

	/* Files; NULL: not a kind of file. is_file() sees the file's first bytes, unpacked when it
	 * is gzip; read_file() reads it. An error names the offset and does not name the path. */
	bool (*is_file)(const void *head, size_t n);
	struct err *(*read_file)(const char *path, struct graph *g);

	/* Processes and cores; NULL: not a runtime. `runtime` is the interpreter whose heap it is.
	 * read_copy() reads a copy of the memory. The process goes on meanwhile, and `s` serves
	 * only what does not change: mapped files, symbols. files: memory_copy_files(), too. */
	const struct runtime_type *runtime;
	bool files;
	struct err *(*read_copy)(struct memory_copy *copy, struct space *s, struct graph *g);
};

#endif
