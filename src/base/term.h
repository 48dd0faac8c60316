/* What goes to a terminal. Names of processes, functions and files, arguments and traced data come
 * from others, and a terminal obeys the control sequences in them. So whatever is written to a
 * terminal is escaped as D's %S does, "\033" for ESC: control characters (C0 but tab and line feed,
 * DEL, C1), those that turn the direction of writing, and bytes that are no UTF-8. Files and pipes
 * get every byte as it is.
 *
 * One place does it: stdout and stderr become streams with a filter behind them. fileno() of such a
 * stream is -1.
 */
#ifndef DESCRY_BASE_TERM_H
#define DESCRY_BASE_TERM_H

#include <stdbool.h>
#include <stdio.h>

/* Puts the filter behind stdout and stderr, each if it is a terminal. Called once, before anything
 * is written. */
void term_begin(void);
/* fopen(3), with the filter if the file is a terminal. Closed by fclose(3). */
FILE *term_fopen(const char *path, const char *mode);
/* Is there a filter behind f? */
bool term_is(const FILE *f);
/* Writes n bytes to f past the filter: sequences of our own. Errors are f's (ferror). */
void term_raw(FILE *f, const char *p, size_t n);
/* Would the filter change any of the n bytes? */
bool term_changes(const char *p, size_t n);
/* The n bytes as a terminal gets them, NUL-terminated; free() it. */
char *term_text(const char *p, size_t n);

#endif
