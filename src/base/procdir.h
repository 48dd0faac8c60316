/* What has a number in a folder of /proc: processes (/proc), threads (/proc/PID/task), descriptors
 * (/proc/PID/fd).
 *
 *	cleanup_dir DIR *d = opendir("/proc");
 *	for (int pid; procdir_next(d, &pid);)
 */
#ifndef DESCRY_BASE_PROCDIR_H
#define DESCRY_BASE_PROCDIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The next number. False: there is none left, or d is NULL: what cannot be opened has nothing in
 * it. */
bool procdir_next(DIR *d, int *ret);

/* When a process began, in ticks since the machine did (/proc/PID/stat): tells it from a later one
 * of that number. 0: there is none. */
uint64_t procdir_start(pid_t pid);

/* Does /proc hide processes from users whose they are not (proc(5), `hidepid`)? */
bool procdir_hides(void);
/* The same of the text of a /proc/PID/mountinfo. */
bool procdir_hides_in(const char *mountinfo);

static inline void cleanup_dir_(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define cleanup_dir __attribute__((cleanup(cleanup_dir_)))

#endif
