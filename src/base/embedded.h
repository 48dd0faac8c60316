/* Files of the source tree that stand in the binary. tools/embed-files makes a table of them at
 * build time, ordered by name. */
#ifndef DESCRY_BASE_EMBEDDED_H
#define DESCRY_BASE_EMBEDDED_H

#include <stdint.h>

/* The last one of a table has no name. */
struct embedded_file {
	const char *name; /* without folders: "io.d" */
	const char *text; /* NUL-terminated */
	uint32_t len;     /* bytes, without the NUL */
};

#endif
