/* Writes a graph of Java's objects as an HPROF file, for other programs. */
#ifndef DESCRY_MEMORY_HEAPFILE_HPROF_WRITE_H
#define DESCRY_MEMORY_HEAPFILE_HPROF_WRITE_H

#include "base/out.h"
#include "memory/graph/graph.h"

/* The graph has labels. Numbers, strings and the contents of arrays are written if the graph
 * has them; else they are zeros. Returns how many references had no place. */
uint64_t hprof_write(struct graph *g, struct out *o);

#endif
