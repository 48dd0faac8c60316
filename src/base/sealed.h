/* Files in memory that other processes map as program text. */
#ifndef DESCRY_BASE_SEALED_H
#define DESCRY_BASE_SEALED_H

#include <stddef.h>

#include "base/err.h"

/* Makes a file of these bytes that nobody can change: any process that has a descriptor of it could
 * open it anew for writing otherwise. Its descriptor is closed by execve(2). */
struct err *sealed_file(const char *name, const void *data, size_t size, int *ret_fd);

#endif
