/* Numbered entries in a folder of /proc: processes (/proc), threads (/proc/PID/task), descriptors
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

/* Returns the next number. Returns false at the end, or when d is NULL, so a folder that cannot be
 * opened counts as empty. */
bool procdir_next(DIR *d, int *ret);
/* Opens the folder of a process's threads (/proc/PID/task). Returns NULL when there is none. */
DIR *procdir_threads(pid_t pid);

/* Returns the time when a process started, in ticks since boot (/proc/PID/stat), or 0 when there is
 * no such process. It distinguishes the process from a later one with the same number. */
uint64_t procdir_start(pid_t pid);

/* Sets ret to numbers that a program keeps from execve(2) to its end, and that the next program of
 * the process has by chance only: where its code and its stack begin (/proc/PID/stat). Returns
 * false when this process may not know them, or there is no such process. */
bool procdir_program(pid_t pid, uint64_t ret[2]);

/* Returns where the memory begins that brk(2) lengthens (/proc/PID/stat), or 0 when this process
 * may not know. */
uint64_t procdir_heap(pid_t pid);

/* Returns true when no thread of the process will run code of its program again: there is no such
 * process, or each of its threads is ending or has ended. A zombie has ended, though kill(2) still
 * finds it. */
bool procdir_ended(pid_t pid);
/* Returns the same for one thread, by the text of its /proc/PID/task/TID/stat. */
bool procdir_ended_in(const char *stat);

/* Returns a thread whose files in /proc are those of the process: memory, descriptors, directories.
 * It is the first thread, whose number is the process's, unless that one has ended while others
 * run (pthread_exit(3) in main()): its files are empty. */
pid_t procdir_living_thread(pid_t pid);

/* Returns true when /proc hides processes of other users (proc(5), `hidepid`). */
bool procdir_hides(void);
/* Returns the same for the text of a /proc/PID/mountinfo. */
bool procdir_hides_in(const char *mountinfo);

static inline void cleanup_dir_(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define cleanup_dir __attribute__((cleanup(cleanup_dir_)))

#endif
