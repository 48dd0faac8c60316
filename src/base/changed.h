/* Files that others change while they are read: the test for a change, and the list of changed
 * files.
 *
 * In: open files. Out: the names of changed files, for messages and for their readers.
 * Always true: the list only grows. Signal handlers and any thread may add to it. */
#ifndef DESCRY_BASE_CHANGED_H
#define DESCRY_BASE_CHANGED_H

#include <stdbool.h>
#include <stdint.h>

/* The data of a file that stay equal as long as nobody writes to it or truncates it. */
struct file_state {
	uint64_t dev, inode, size;
	int64_t mtime_ns; /* CLOCK_REALTIME */
};
/* Reads the state of an open file. Returns false when fstat() fails. */
bool file_state_read(int fd, struct file_state *ret);
bool file_state_same(const struct file_state *a, const struct file_state *b);

enum {
	CHANGED_MAX = 64,
	CHANGED_PATH = 4096 /* bytes with the NUL; longer paths lose their end */
};
/* Adds a path once. When the list has CHANGED_MAX paths, only changed_count() grows. */
void changed_add(const char *path);
/* Notes that an error has named the path. changed_untold() then returns false for it. */
void changed_told(const char *path);
/* Returns how often changed_add() was called. */
uint64_t changed_count(void);
/* Returns the i-th path, in the order of adding, or NULL when there are no more. Valid until the
 * process ends. */
const char *changed_path(uint32_t i);
/* Returns true when no error has named the i-th path. */
bool changed_untold(uint32_t i);

#endif
