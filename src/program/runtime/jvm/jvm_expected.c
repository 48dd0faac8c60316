/* Finds out whether walks of user stacks may meet a JVM, before there is one. */
#include <string.h>
#include <unistd.h>

#include "base/procdir.h"
#include "base/path.h"
#include "program/runtime/jvm/jvm.h"
#include "program/space/mapping.h"

bool jvm_is_in(pid_t pid)
{
	struct mappings maps = { 0 };
	bool any = false;

	err_free(mappings_read(pid, &maps));
	for (uint32_t i = 0; i < maps.n && !any; i++)
		any = !strcmp(path_base(maps.v[i].path), "libjvm.so");
	mappings_free(&maps);
	return any;
}

bool jvm_is_here(void)
{
	static const char *const usual[] = { "/usr/lib/jvm", "/usr/java", "/opt/java" };
	cleanup_dir DIR *d = NULL;
	bool any = false;

	for (uint32_t i = 0; i < ARRAY_SIZE(usual) && !any; i++)
		any = !access(usual[i], F_OK);
	d = any ? NULL : opendir("/proc");
	for (pid_t pid; !any && procdir_next(d, &pid);) {
		char link[32], path[512];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = 0;
		any = !strcmp(path_base(path), "java");
	}
	return any;
}
