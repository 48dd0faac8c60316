#include "base/procdir.h"

#include <limits.h>
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

uint64_t procdir_start(pid_t pid)
{
	cleanup_free char *text = NULL;
	char path[64];
	unsigned long long t = 0;
	const char *p;
	size_t n;
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	e = io_read_file(path, &text, &n);
	if (e) {
		err_free(e);
		return 0;
	}
	p = strrchr(text, ')'); /* the name may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		t = strtoull(p + 1, NULL, 10);
	return t;
}
