/* The names of Java's classes. */
#ifndef DESCRY_MEMORY_HEAPFILE_JAVA_NAME_H
#define DESCRY_MEMORY_HEAPFILE_JAVA_NAME_H

#include "base/out.h"

/* Writes the name that the JVM has for a class as programmers write it: "java/lang/String" as
 * "java.lang.String", and "[[I" as "int[][]". */
void java_name(struct out *o, const char *name);

#endif
