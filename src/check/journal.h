/* The old values of what `descry check --apply` changed, in a file: one line a change, oldest
 * first.
 *
 *	BOOT-ID TAB NAME TAB OLD VALUE TAB NEW VALUE LF	(tabs inside values are spaces)
 *
 * Always true: a line is on the disk before its change is made; --undo goes through them from the
 * last to the first and removes each line only when its change is undone.
 */
#ifndef DESCRY_CHECK_JOURNAL_H
#define DESCRY_CHECK_JOURNAL_H

#include <stdio.h>

#include "check/tunable.h"

#define JOURNAL_PATH "/var/lib/descry/tuned"

/* Notes the present value in the journal at path, then sets the new one, and says so on out. */
struct err *journal_apply(const char *path, const struct tunables *t, const char *name,
			  const char *value, FILE *out);
/* Puts back what the journal has; *ret_left is how many could not be, each said on errors. */
struct err *journal_undo(const char *path, const struct tunables *t, FILE *out, FILE *errors,
			 unsigned *ret_left);

#endif
