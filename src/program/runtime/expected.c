/* Finds out whether walks of user stacks may meet a language's machine, before there is one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/procdir.h"
#include "program/runtime/runtime.h"
#include "program/space/mapping.h"

bool runtime_is_in(const struct runtime_type *type, pid_t pid)
{
	struct mappings maps = { 0 };
	bool any = false;

	err_free(mappings_read(pid, &maps));
	for (uint32_t i = 0; i < maps.n && !any; i++)
		any = type->is_library(path_base(maps.v[i].path));
	mappings_free(&maps);
	return any;
}

/* Returns true when a directory of PATH has the program. */
static bool is_in_path(const char *program)
{
	const char *dirs = getenv("PATH");
	char path[4096];

	for (size_t n; dirs && *dirs; dirs += n + (dirs[n] == ':')) {
		n = strcspn(dirs, ":");
		if (n &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs, program) <
			    (int)sizeof(path) &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

bool runtime_is_here(const struct runtime_type *type)
{
	cleanup_dir DIR *d = NULL;
	bool any = is_in_path(type->program);

	for (const char *const *p = type->usual; *p && !any; p++)
		any = !access(*p, F_OK);
	d = any ? NULL : opendir("/proc");
	for (pid_t pid; !any && procdir_next(d, &pid);) {
		char link[32], path[512];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = 0;
		any = !strcmp(path_base(path), type->program);
	}
	return any;
}
