/* Reads the limits of memory control groups, as cgroups(7) and the kernel's
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst describe them. */
#include "base/memgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"

enum { GROUPS_MAX = 64 }; /* one above another */

/* The files of a control group, of both versions of control groups. */
static const struct group_files {
	const char *controller, *top, *most, *now, *cached[2];
} versions[] = {
	{ "",
	  "/sys/fs/cgroup",
	  "memory.max",
	  "memory.current",
	  { "\ninactive_file ", "\nactive_file " } },
	{ "memory",
	  "/sys/fs/cgroup/memory",
	  "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  { "\ntotal_inactive_file ", "\ntotal_active_file " } },
};

/* Returns the number behind `key` in a file, UINT64_MAX when it has none. */
static uint64_t group_number(const char *top, const char *group, const char *file, const char *key)
{
	cleanup_free char *path = xasprintf("%s%s/%s", top, group, file), *text = NULL;
	size_t n = 0;
	struct err *e = io_read_file(path, &text, &n);
	const char *p = e ? NULL : strstr(text, key);
	unsigned long long v = UINT64_MAX;

	err_free(e);
	if (p && sscanf(p + strlen(key), "%llu", &v) != 1)
		v = UINT64_MAX;
	return v;
}

/* Returns how many more bytes a group and those above it may have. Pages of files make room. */
static uint64_t room_of(const struct group_files *f, char *group)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < GROUPS_MAX; i++) {
		uint64_t most = group_number(f->top, group, f->most, "");
		uint64_t now = group_number(f->top, group, f->now, "");
		char *end = strrchr(group, '/');

		if (most != UINT64_MAX && now != UINT64_MAX) {
			for (size_t k = 0; k < ARRAY_SIZE(f->cached); k++) {
				const uint64_t cached =
					group_number(f->top, group, "memory.stat", f->cached[k]);

				if (cached != UINT64_MAX)
					now -= cached < now ? cached : now;
			}
			if (most < now || most - now < least)
				least = most > now ? most - now : 0;
		}
		if (!end)
			break;
		*end = '\0';
	}
	return least;
}

/* Takes a line, "4:memory:/a/b", "5:cpu,memory:/a" or "0::/a". Returns NULL when it is of no group
 * that limits memory. */
static const struct group_files *files_of(char *line, char **ret_group)
{
	char *controllers = strchr(line, ':'),
	     *group = controllers ? strchr(controllers + 1, ':') : NULL;
	cleanup_free char *list = NULL;

	if (!group)
		return NULL;
	*group = '\0';
	*ret_group = group + 1;
	list = xasprintf(",%s,", controllers + 1);
	return !controllers[1] ? &versions[0] : strstr(list, ",memory,") ? &versions[1] : NULL;
}

uint64_t memgroup_room(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/cgroup", pid), *text = NULL;
	uint64_t least = UINT64_MAX, room;
	char *rest = NULL, *group;
	size_t n = 0;

	if (err_drop(io_read_file(path, &text, &n)))
		return least;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const struct group_files *f = files_of(line, &group);

		room = f ? room_of(f, group) : UINT64_MAX;
		least = room < least ? room : least;
	}
	return least;
}
