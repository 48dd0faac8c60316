/* Files of one or a few lines in /proc and /sys, and the links between them. */
#ifndef DESCRY_CHECK_SMALL_H
#define DESCRY_CHECK_SMALL_H

#include <stdbool.h>

#include "base/err.h"

/* Returns the text of a file without the white space at its end, or NULL when it cannot be read.
 * The caller frees it. */
char *small_read(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Returns the last part of a symbolic link's target, such as a driver's name, or NULL. The caller
 * frees it. */
char *small_link(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes text in one write(2), which files of /proc and /sys require. */
struct err *small_write(const char *path, const char *text);
/* Returns the word in brackets of "never [madvise] always", or the whole text when there is none.
 * The caller frees it. */
char *small_chosen(const char *text);
/* Returns the number of names in a directory, without "." and "..", and 0 when it cannot be read.
 * *ret has the names, sorted. The caller frees each and *ret. */
unsigned small_names(const char *dir, char ***ret);
void small_names_free(char **names, unsigned n);

#endif
