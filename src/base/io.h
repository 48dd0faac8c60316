/* Whole files. */
#ifndef DESCRY_BASE_IO_H
#define DESCRY_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

/* Reads all of path ("-" is standard input). Works on /proc files, whose size is unknown. *ret_text
 * is NUL-terminated. The caller frees it. */
struct err *io_read_file(const char *path, char **ret_text, size_t *ret_len);
/* The same for a file by name, of which at most so many bytes are read. */
struct err *io_read_most(const char *path, size_t most, char **ret_text, size_t *ret_len);
/* The same for an open descriptor, from where it stands. path: for errors */
struct err *io_read_fd(int fd, const char *path, size_t most, char **ret_text, size_t *ret_len);
struct err *io_read_at(int dirfd, const char *path, char **ret_text, size_t *ret_len);
/* Writes all n bytes. Returns false with errno. */
bool io_write(int fd, const void *p, size_t n);
/* Flushes and checks f, so that a full disk is an error. */
struct err *io_flush(FILE *f, const char *name);
/* Has the disk of a file room for n more bytes? A sixteenth of its room is left to others. */
bool io_disk_has(int fd, uint64_t n);

#endif
