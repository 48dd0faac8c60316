/* Cuts an input into whole lines.
 *
 * In: the bytes of a file or pipe, in pieces of any size. Out: calls with one or more whole lines.
 * Always true: the first call is of `begin`, with the beginning of the input: all of it, or
 * LINES_BEGINNING bytes. A line longer than `longest` is not kept.
 */
#ifndef DESCRY_INPUT_INPUT_LINES_H
#define DESCRY_INPUT_INPUT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

/* An inflated line may be a thousand times larger than its file. */
enum { LINES_BEGINNING = 64 * 1024, LINES_LONGEST = 1 << 30, LINES_INFLATED_LONGEST = 16 << 20 };

struct lines_ops {
	void (*begin)(void *arg, const char *text, size_t len); /* recognises the format */
	/* text[len - 1] is '\n'. The lines are gone after the call. */
	void (*lines)(void *arg, const char *text, size_t len);
	void (*too_long)(void *arg); /* a line is dropped */
};

struct lines {                /* all zero at first */
	bool begun, dropping; /* dropping: what remains of a line that is too long */
	uint32_t longest;     /* bytes of a line; 0: LINES_LONGEST */
	VEC(char) rest;       /* all input before `begin`, then the line that has not ended yet */
};

void lines_feed(struct lines *l, const struct lines_ops *ops, void *arg, const char *text,
		size_t len);
/* Ends the input. Adds a '\n' to a last line without one. Another input may follow. */
void lines_end(struct lines *l, const struct lines_ops *ops, void *arg);
void lines_fini(struct lines *l);

/* Reads fd to its end and calls feed() with each piece. `name` is for messages. */
struct err *lines_read(int fd, const char *name,
		       void (*feed)(void *arg, const char *text, size_t len), void *arg);

#endif
