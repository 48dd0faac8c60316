/* The limit of open files (RLIMIT_NOFILE). descry raises its own, because tracing a whole system
 * takes many thousand files. Programs that it starts get the original limit back, because select(2)
 * handles at most 1024. */
#ifndef DESCRY_BASE_NOFILE_H
#define DESCRY_BASE_NOFILE_H

#include <stdbool.h>

/* Raises the limit to the hard limit. */
void nofile_raise(void);
/* Restores the original limit. Async-signal-safe. Open files stay open. Returns false, and changes
 * nothing, when nofile_raise() was never called: a program embeds descry. */
bool nofile_restore(void);

#endif
