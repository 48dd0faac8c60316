/* The flags of a process's mappings, which only /proc/PID/smaps has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/procdir.h"
#include "program/space/mapping.h"

bool mapping_has_flag(const char *flags, const char *flag)
{
	for (const char *p = flags; (p = strstr(p, flag)); p++)
		if (p > flags && p[-1] == ' ' && (p[2] == ' ' || p[2] == '\n'))
			return true;
	return false;
}

struct err *mappings_flags(pid_t pid, uint32_t ms,
			   void (*fn)(void *arg, uint64_t start, uint64_t end, const char *flags),
			   void *arg)
{
	cleanup_free char *path = xasprintf("/proc/%d/smaps", (int)procdir_living_thread(pid));
	cleanup_free char *line = NULL;
	const uint64_t until = now_ns() + ms * 1000000ull;
	FILE *f = fopen(path, "re");
	unsigned long long start = 0, end = 0, a, b;
	struct err *e = f ? NULL : err_errno(errno, "%s", path);
	size_t cap = 0;

	while (!e && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%llx-%llx ", &a, &b) == 2) {
			start = a;
			end = b;
			if (now_ns() > until)
				e = err_new(ETIMEDOUT, "%s: too many mappings", path);
		} else if (!strncmp(line, "VmFlags:", 8)) {
			fn(arg, start, end, line);
		}
	}
	if (f)
		fclose(f);
	return e;
}
