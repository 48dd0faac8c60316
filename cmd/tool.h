/* What `descry flame`, `heat`, `profile`, `serve` and `heal` say and do alike. */
#ifndef DESCRY_CMD_TOOL_H
#define DESCRY_CMD_TOOL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "render/out.h"

/* Its messages begin with the name from now on: "descry flame". Borrowed. */
void tool_begin(const char *name);
/* A line on standard error. 2, the exit status of wrong usage. */
int tool_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says what e says. 1, the exit status. */
int tool_failed(const struct err *e);
/* A process id; 2, after a message that begins with `what`, when it is none. */
int tool_pid(const char *what, const char *text, pid_t *ret);
/* A whole number of an option; 2 when it is none, or out of bounds. */
int tool_integer(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret);
/* An option's number, which may have a fraction; 2 when it is none, or out of bounds. */
int tool_number(const char *option, const char *text, double min, double max, double *ret);
/* Could a file of that name be written? Asked before a program is run for what shall be in it. NULL
 * path: yes. */
struct err *tool_can_write(const char *path);

/* Output to a file of that name, or standard output (path NULL, *ret NULL); then its end, whose
 * errors name the file. */
struct err *tool_out_begin(struct out *o, const char *path, FILE **ret);
struct err *tool_out_end(struct out *o, const char *path, FILE *file);

/* Has the reader of our output gone (`| head`)? Then the caller prints no message, and tool_end()
 * ends the program as SIGPIPE would. */
bool tool_reader_gone(const struct err *e);
/* Before anything is opened or written: a standard descriptor that is closed is not given to a
 * file, what goes to a terminal is escaped (base/term.h), and a file that has reached the size
 * limit (ulimit -f) is an error of write(2) instead of a signal that ends us. Programs that we
 * start have the signal as it was. */
void tool_start(void);
/* From now on the signal makes a system call fail instead of ending us; programs that we start have
 * it as it was. */
void tool_ignore(int sig);
/* Called while much is printed: keeps the first reason why standard output could not be written,
 * for tool_end() to say. */
void tool_check_output(void);
/* The last of all: status; 1 after a message when standard output could not be written; or no
 * return. */
int tool_end(int status);

#endif
