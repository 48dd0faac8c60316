/* Fields of /proc/PID/status. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/procstatus.h"

static char *read_text(const char *path)
{
	char *text = NULL;

	err_free(io_read_file(path, &text, NULL));
	return text;
}

char *procstatus_read(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid);

	return read_text(path);
}

char *procstatus_read_thread(pid_t pid, pid_t tid)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/status", (int)pid, (int)tid);

	return read_text(path);
}

const char *procstatus_field(const char *text, const char *name)
{
	const size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return "";
}

int64_t procstatus_number(const char *text, const char *name, int nth)
{
	const char *at = procstatus_field(text, name);
	int64_t v = -1;

	for (int i = 0;; i++) {
		char *end;
		int64_t next = *at == '\n' ? 0 : strtoll(at, &end, 10);

		if (*at == '\n' || end == at)
			return nth == PROCSTATUS_LAST ? v : -1;
		v = next;
		if (i == nth)
			return v;
		at = end + strspn(end, " \t");
	}
}

uint64_t procstatus_mask(const char *text, const char *name)
{
	return strtoull(procstatus_field(text, name), NULL, 16);
}

uint32_t procstatus_count(const char *text, const char *name, int nth)
{
	int64_t v = procstatus_number(text, name, nth);

	return v < 0 ? 0 : (uint32_t)v;
}

uint32_t procstatus_of(pid_t pid, const char *name, int nth)
{
	cleanup_free char *text = procstatus_read(pid);

	return procstatus_count(text, name, nth);
}
