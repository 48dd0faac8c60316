/* Files of a line or a few, as /proc and /sys have them, and the links between them. */
#ifndef DESCRY_CHECK_SMALL_H
#define DESCRY_CHECK_SMALL_H

#include <stdbool.h>

#include "base/err.h"

/* The text of a file without the white space at its end; NULL when it cannot be read. free() it. */
char *small_read(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The last part of what a symbolic link leads to: a driver's name, NULL none. free() it. */
char *small_link(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes text in one write(2), as files of /proc and /sys want it. */
struct err *small_write(const char *path, const char *text);
/* The word in brackets of "never [madvise] always"; the whole text when there is none. free()
 * it. */
char *small_chosen(const char *text);
/* Names in a directory, sorted, "." and ".." not among them; the count, 0 when it cannot be read.
 * Free each and *ret. */
unsigned small_names(const char *dir, char ***ret);
void small_names_free(char **names, unsigned n);

#endif
