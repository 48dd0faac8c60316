/* Finds the libraries of allocators by their names. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>

#include "memory/alloc/replay.h"

static const struct {
	const char *name, *pattern, *package;
} known[] = {
	{ "jemalloc", "/usr/lib/*-linux-gnu*/libjemalloc.so.2", "libjemalloc2" },
	{ "tcmalloc", "/usr/lib/*-linux-gnu*/libtcmalloc_minimal.so.4", "libtcmalloc-minimal4" },
	{ "mimalloc", "/usr/lib/*-linux-gnu*/libmimalloc.so.2*", "libmimalloc2.0" },
};

const char *const replay_names[] = { "glibc", "jemalloc", "tcmalloc", "mimalloc", NULL };

struct err *replay_find(const char *name, struct replay_allocator *ret, struct arena *a)
{
	glob_t g;

	*ret = (struct replay_allocator){ .name = arena_strdup(a, name) };
	if (!strcmp(name, "glibc"))
		return NULL;
	if (strchr(name, '/')) {
		char *path = realpath(name, NULL); /* LD_PRELOAD takes neither ':' nor blanks */
		struct err *e = NULL;

		if (!path)
			return err_errno(errno, "%s", name);
		if (strpbrk(path, ": "))
			e = err_new(EINVAL, "%s: LD_PRELOAD has no way to name it", path);
		ret->path = arena_strdup(a, path);
		ret->name = strrchr(ret->path, '/') + 1;
		free(path);
		return e;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		if (!glob(known[i].pattern, 0, NULL, &g)) {
			ret->path = arena_strdup(a, g.gl_pathv[0]);
			globfree(&g);
			return NULL;
		}
		return err_new(ENOENT, "%s is not installed: apt-get install %s", name,
			       known[i].package);
	}
	return err_new(EINVAL,
		       "%s is no allocator that descry knows: glibc, jemalloc, tcmalloc, "
		       "mimalloc or the path of a library",
		       name);
}
