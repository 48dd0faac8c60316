/* Lists numbered entries of /proc and reads facts about processes there. */
#define _GNU_SOURCE
#include "base/procdir.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"

bool procdir_next(DIR *d, int *ret)
{
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char *end;
		long n = strtol(de->d_name, &end, 10);

		if (end != de->d_name && !*end && n >= 0 && n <= INT_MAX) {
			*ret = (int)n;
			return true;
		}
	}
	return false;
}

/* Returns the text of a field of /proc/PID/stat, from the third on (proc(5)), in *ret_text, which
 * the caller frees; NULL: there is none. */
static const char *stat_field(pid_t pid, int number, char **ret_text)
{
	char path[64];
	const char *p;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (err_drop(io_read_file(path, ret_text, &n)))
		return NULL;
	p = strrchr(*ret_text, ')'); /* the name may contain any character */
	for (int field = 2; p && field < number; field++)
		p = strchr(p + 1, ' ');
	return p ? p + 1 : NULL;
}

uint64_t procdir_start(pid_t pid)
{
	cleanup_free char *text = NULL;
	const char *p = stat_field(pid, 22, &text);

	return p ? strtoull(p, NULL, 10) : 0;
}

bool procdir_program(pid_t pid, uint64_t ret[2])
{
	cleanup_free char *text = NULL;
	unsigned long long code = 0, stack = 0;
	const char *p = stat_field(pid, 26, &text);

	/* The kernel writes 0 or 1 for a reader who may not know them. */
	if (!p || sscanf(p, "%llu %*u %llu", &code, &stack) != 2 || code < 2 || stack < 2)
		return false;
	ret[0] = code;
	ret[1] = stack;
	return true;
}

uint64_t procdir_heap(pid_t pid)
{
	cleanup_free char *text = NULL;
	const char *p = stat_field(pid, 47, &text);

	return p ? strtoull(p, NULL, 10) : 0;
}

/* Behind the name in parentheses: state, parent, group, session, terminal, its group, flags. The
 * kernel sets PF_EXITING before it frees the memory, and Z (zombie) or X only afterwards, which may
 * take seconds. */
bool procdir_ended_in(const char *stat)
{
	enum { PF_EXITING = 4 };
	const char *p = strrchr(stat, ')'); /* the name may contain any character */
	unsigned long flags = 0;
	char state = 0;

	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) != 2)
		return false;
	return state == 'Z' || state == 'X' || flags & PF_EXITING;
}

DIR *procdir_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

static bool thread_lives(pid_t pid, pid_t tid)
{
	cleanup_free char *text = NULL;
	char path[64];
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return !err_drop(io_read_file(path, &text, &n)) && !procdir_ended_in(text);
}

bool procdir_ended(pid_t pid)
{
	cleanup_dir DIR *d = procdir_threads(pid);
	int tid;

	if (!d) /* /proc may hide it */
		return kill(pid, 0) && errno == ESRCH;
	while (procdir_next(d, &tid))
		if (thread_lives(pid, tid))
			return false;
	return true;
}

pid_t procdir_living_thread(pid_t pid)
{
	cleanup_dir DIR *d = NULL;
	int tid;

	if (thread_lives(pid, pid))
		return pid;
	d = procdir_threads(pid);
	while (procdir_next(d, &tid))
		if (thread_lives(pid, tid))
			return tid;
	return pid;
}

/* A line is: number, parent, device, root, place, options, ..., " - ", type, source, options. Of
 * several mounts on one place, the last is visible. */
bool procdir_hides_in(const char *mountinfo)
{
	bool hides = false;

	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n');
		cleanup_free char *text = xstrndup(line, (size_t)(end - line));
		char *dash = strstr(text, " - "), *how;
		char place[16] = "";

		line = end + (*end == '\n');
		if (!dash || sscanf(text, "%*s %*s %*s %*s %15s", place) != 1 ||
		    strcmp(place, "/proc"))
			continue;
		how = strstr(dash, "hidepid=");
		hides = how && strncmp(how + 8, "0", 1) && strncmp(how + 8, "off", 3);
	}
	return hides;
}

bool procdir_hides(void)
{
	cleanup_free char *text = NULL;
	size_t n;

	err_free(io_read_file("/proc/self/mountinfo", &text, &n));
	return text && procdir_hides_in(text);
}
