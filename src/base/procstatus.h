/* Fields of /proc/PID/status, as proc_pid_status(5) describes them. The functions read other files
 * of lines "NAME:\tVALUES" as well, such as /proc/PID/fdinfo/FD. */
#ifndef DESCRY_BASE_PROCSTATUS_H
#define DESCRY_BASE_PROCSTATUS_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the text of a process's or a thread's file, or NULL when it cannot be read. The caller
 * frees it. */
char *procstatus_read(pid_t pid);
char *procstatus_read_thread(pid_t pid, pid_t tid);

/* Returns the text behind "NAME:" and white space, up to the end of the whole text, or "" when
 * there is no such line. The text may be NULL. */
const char *procstatus_field(const char *text, const char *name);

/* Returns a number of the line with this name: the first one for nth 0. Returns -1 when the text
 * has no such line, or the line no such number. */
enum { PROCSTATUS_LAST = -1 }; /* nth: the last number of the line */
int64_t procstatus_number(const char *text, const char *name, int nth);
/* Returns the same number, and 0 in place of -1. */
uint32_t procstatus_count(const char *text, const char *name, int nth);

/* Returns a hexadecimal set of bits (signals, capabilities), or 0 when there is no such line. */
uint64_t procstatus_mask(const char *text, const char *name);

/* Reads the file of a process, and returns procstatus_count() of its text. */
uint32_t procstatus_of(pid_t pid, const char *name, int nth);

#endif
