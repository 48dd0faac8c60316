/* The objects of a language's heap, read from outside: sources of object graphs (`descry heap`).
 *
 * In: a space (a process that is stopped for the copy, or a core file). Out: every object with its
 * class, size and references, and the roots.
 * Always true: no code runs in the process, and it is not changed. References are those that the
 * collector follows; where its structures are not known to descry (the data of extensions), each
 * word that is an object's address counts as one. The memory is untrusted: every walk ends.
 */
#ifndef DESCRY_MEMORY_HEAPLIVE_OBJECTS_H
#define DESCRY_MEMORY_HEAPLIVE_OBJECTS_H

#include "memory/graph/source.h"

extern const struct heap_source heap_source_ruby, heap_source_python, heap_source_java,
	heap_source_v8, heap_source_native;

#endif
