/* Output to terminals. Names of processes, functions and files, arguments and traced data come from
 * others, and a terminal obeys the control sequences in them. Therefore all text for a terminal is
 * escaped like D's %S, with "\033" for ESC: control characters (C0 but tab and line feed, DEL, C1),
 * characters that turn the direction of writing, and bytes that are not UTF-8. Files and pipes get
 * every byte as it is.
 *
 * stdout and stderr become streams with a filter behind them. fileno() of such a stream is -1. */
#ifndef DESCRY_BASE_TERM_H
#define DESCRY_BASE_TERM_H

#include <stdbool.h>
#include <stdio.h>

/* Puts the filter behind stdout and behind stderr, if they are terminals. Call it once, before
 * anything is written. */
void term_begin(void);
/* Makes a stream that writes to a descriptor, with the filter if it is a terminal. The descriptor
 * is the stream's, also on a failure; below 0: returns NULL, with errno as it is. */
FILE *term_file(int fd);
/* Returns true when a filter is behind f. */
bool term_is(const FILE *f);
/* Writes n bytes to f past the filter, for descry's own sequences. Errors are f's (ferror). */
void term_raw(FILE *f, const char *p, size_t n);
/* Returns true when the filter would change any of the n bytes. */
bool term_changes(const char *p, size_t n);
/* Returns the n bytes as a terminal gets them, NUL-terminated. The caller frees the text. */
char *term_text(const char *p, size_t n);

#endif
