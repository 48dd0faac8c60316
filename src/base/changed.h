/* Files that others change while they are read: what tells that one did, and the list of those that
 * did.
 *
 * In: open files. Out: the names of files that are not what they were, for messages and for who has
 * read them.
 * Always true: the list only grows; it may be added to in signal handlers and on any thread.
 */
#ifndef DESCRY_BASE_CHANGED_H
#define DESCRY_BASE_CHANGED_H

#include <stdbool.h>
#include <stdint.h>

/* What stays the same as long as nobody writes to a file or cuts it short. */
struct file_state {
	uint64_t dev, inode, size;
	int64_t mtime_ns; /* CLOCK_REALTIME */
};
/* Of an open file. False: fstat() fails. */
bool file_state_read(int fd, struct file_state *ret);
bool file_state_same(const struct file_state *a, const struct file_state *b);

enum {
	CHANGED_MAX = 64,
	CHANGED_PATH = 4096 /* bytes with the NUL; longer paths lose their end */
};
/* Adds a path once; when CHANGED_MAX are known it is only counted. */
void changed_add(const char *path);
/* An error has been made of it: changed_untold() leaves it out. */
void changed_told(const char *path);
/* How often changed_add() was called. */
uint64_t changed_count(void);
/* The i-th path, in the order of adding; NULL: there are no more. Valid for ever. */
const char *changed_path(uint32_t i);
/* Is the i-th one still to be told of? */
bool changed_untold(uint32_t i);

#endif
