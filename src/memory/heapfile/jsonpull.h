/* JSON that is read from front to end without a tree of it, for dumps larger than memory.
 *
 * In: a file. Out: one value after the other, as the caller asks for them.
 * Always true: after the first error each function returns false, and nothing recurses.
 */
#ifndef DESCRY_MEMORY_HEAPFILE_JSONPULL_H
#define DESCRY_MEMORY_HEAPFILE_JSONPULL_H

#include "memory/heapfile/unpack.h"

enum { JSONPULL_TEXT = 1024 }; /* bytes of a string that are kept */

struct jsonpull {
	struct unpack *in;
	struct err *error;
	char text[JSONPULL_TEXT + 8]; /* the last string, ended by NUL */
	size_t n;                     /* of text */
};

/* Sets the error "byte N: ...", unless there is one. Returns false. */
bool jsonpull_bad(struct jsonpull *j, const char *expected);
/* Returns the next character behind white space without taking it; 0: the file ends, or an
 * error. */
char jsonpull_peek(struct jsonpull *j);
/* Takes this character. */
bool jsonpull_take(struct jsonpull *j, char c);
/* Reads a string into text. */
bool jsonpull_string(struct jsonpull *j);
/* Reads a number without its sign, fraction and exponent. */
bool jsonpull_number(struct jsonpull *j, uint64_t *ret);
/* Passes over any value. */
bool jsonpull_skip(struct jsonpull *j);
/* Before each member of an object or element of an array whose first bracket was taken: returns
 * false behind the last, whose bracket it takes, and after an error. */
bool jsonpull_next(struct jsonpull *j, char end, bool *first);
/* The same of an object; text is the member's name, and its value comes next. */
bool jsonpull_member(struct jsonpull *j, bool *first);

#endif
