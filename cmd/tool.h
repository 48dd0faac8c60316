/* Shared by `descry flame`, `heat`, `profile`, `serve` and `heal`: messages, numbers, output. */
#ifndef DESCRY_CMD_TOOL_H
#define DESCRY_CMD_TOOL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/out.h"

/* Sets the prefix of messages: "descry flame". Borrowed. */
void tool_begin(const char *name);
/* Prints a line on standard error. Returns 2, the exit status of wrong usage. */
int tool_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints how to get the help of the command. Returns 2. */
int tool_hint(void);
/* Prints the message of e. Returns 1, the exit status. */
int tool_failed(const struct err *e);
/* Parses a process id. On failure prints a message that begins with `what` and returns 2. */
int tool_pid(const char *what, const char *text, pid_t *ret);
/* Parses a whole number of an option. Returns 2 after a message when it is wrong or out of
 * bounds. */
int tool_integer(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret);
/* Parses a number with an optional fraction. Returns 2 after a message when it is wrong or out of
 * bounds. */
int tool_number(const char *option, const char *text, double min, double max, double *ret);
/* Checks that a file of that name can be written, before a program runs whose output goes there.
 * path NULL: always. */
struct err *tool_can_write(const char *path);

/* Returns the exit status of a shell that ran a command with this wait(2) status. */
int tool_command_status(int status);
/* Writes the words of a command as one, from which session_command() makes the same words.
 * malloc()ed. */
char *tool_quote(char *const *words);

/* Opens output to a file of that name, or to standard output (path NULL, *ret NULL). tool_out_end()
 * closes it; its errors name the file. */
struct err *tool_out_begin(struct out *o, const char *path, FILE **ret);
/* The same for contents of a process's memory: only its user can read a file that is made. */
struct err *tool_out_begin_private(struct out *o, const char *path, FILE **ret);
struct err *tool_out_end(struct out *o, const char *path, FILE *file);

/* Returns true when the reader of the output has ended (`| head`). Then the caller prints no
 * message, and tool_end() ends the program as SIGPIPE would. */
bool tool_reader_gone(const struct err *e);
/* Called before anything is opened or written. Fills closed standard descriptors, so that no file
 * gets them; escapes output to a terminal (base/term.h); and turns SIGXFSZ (ulimit -f) into an
 * error of write(2). Started programs have the signal as it was. */
void tool_start(void);
/* Makes the signal interrupt a system call from now on and not end the program. Started programs
 * have the signal as it was. */
void tool_ignore(int sig);
/* Calls fn for the signals that end a run, and for SIGCHLD: each interrupts a wait. Signals within
 * 0.2 s count once, and the third ends this process. A closed pipe only makes writes fail. */
void tool_catch(void (*fn)(int));
/* The same without SIGCHLD. */
void tool_catch_ends(void (*fn)(int));
/* Called during long output: keeps the first reason why standard output could not be written, for
 * tool_end() to print. */
void tool_check_output(void);
/* The last call: returns status, or 1 after a message when standard output could not be written, or
 * does not return. */
int tool_end(int status);

#endif
