/* What `descry flame`, `heat`, `profile`, `serve` and `heal` say and do alike. */
#ifndef DESCRY_CMD_TOOL_H
#define DESCRY_CMD_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "render/out.h"

/* Its messages begin with the name from now on: "descry flame". Borrowed. */
void tool_begin(const char *name);
/* A line on standard error. 2, the exit status of wrong usage. */
int tool_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says what e says. 1, the exit status. */
int tool_failed(const struct err *e);
/* An option's number; 2 when it is none, or out of bounds. */
int tool_number(const char *option, const char *text, double min, double max, double *ret);
/* Could a file of that name be written? Asked before a program is run for what shall be in it. NULL path: yes. */
struct err *tool_can_write(const char *path);

/* Output to a file of that name, or standard output (path NULL, *ret NULL); then its end, whose errors name the file. */
struct err *tool_out_begin(struct out *o, const char *path, FILE **ret);
struct err *tool_out_end(struct out *o, const char *path, FILE *file);

/* Is it that nobody reads our output any more (`| head`)? Then nothing is said, and tool_end() ends as SIGPIPE ends others. */
bool tool_reader_gone(const struct err *e);
/* The last of all: status, or no return. */
int tool_end(int status);

#endif
