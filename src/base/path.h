/* Paths as text. */
#ifndef DESCRY_BASE_PATH_H
#define DESCRY_BASE_PATH_H

#include <string.h>

/* Returns what follows the last slash of a path, a part of it. */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
