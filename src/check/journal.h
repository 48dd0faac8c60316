/* The journal of `descry check --apply`: a file with the old values, one line a change, oldest
 * first.
 *
 *	BOOT-ID TAB NAME TAB OLD VALUE TAB NEW VALUE LF	(tabs inside values are spaces)
 *
 * Always true: a line is on the disk before its change is made. --undo processes the lines from the
 * last to the first and removes a line only when its change is undone. */
#ifndef DESCRY_CHECK_JOURNAL_H
#define DESCRY_CHECK_JOURNAL_H

#include <stdio.h>

#include "check/tunable.h"

#define JOURNAL_PATH "/var/lib/descry/tuned"

/* Writes the present value to the journal at path, sets the new value, and reports this on out. */
struct err *journal_apply(const char *path, const struct tunables *t, const char *name,
			  const char *value, FILE *out);
/* Restores the values of the journal. *ret_left is the number of changes that could not be undone.
 * Reports each of them on errors. */
struct err *journal_undo(const char *path, const struct tunables *t, FILE *out, FILE *errors,
			 unsigned *ret_left);

#endif
