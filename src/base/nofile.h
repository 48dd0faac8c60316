/* How many files this process may have open (RLIMIT_NOFILE): as many as it is allowed, for a whole
 * system has many thousand; what it starts gets the limit that it was given, since select(2) cannot
 * do more than 1024.
 */
#ifndef DESCRY_BASE_NOFILE_H
#define DESCRY_BASE_NOFILE_H

/* To the hard limit. */
void nofile_raise(void);
/* Back to what it was; async-signal-safe. Files that are open stay so. */
void nofile_restore(void);

#endif
