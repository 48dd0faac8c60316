#include "load/inproc/owner.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

static const char *field(const char *status, const char *name)
{
	const char *p = strstr(status, name);

	return p ? p + strlen(name) : "";
}

static uint64_t name_space(pid_t pid, const char *kind)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/%s", (int)pid, kind);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

struct owner owner_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid), *text = NULL;
	struct owner u = { 0 };
	unsigned long long caps = 0;
	struct stat st;

	err_free(io_read_file(path, &text, NULL));
	if (!text)
		return u;
	sscanf(field(text, "\nUid:"), "%u %u %u %u", &u.uids[0], &u.uids[1], &u.uids[2],
	       &u.uids[3]);
	sscanf(field(text, "\nGid:"), "%u %u %u %u", &u.gids[0], &u.gids[1], &u.gids[2],
	       &u.gids[3]);
	sscanf(field(text, "\nCapPrm:"), "%llx", &caps);
	u.caps = caps;
	u.known = true;
	u.space = name_space(pid, "user");
	u.mounts = name_space(pid, "mnt");
	u.pids = name_space(pid, "pid");
	/* the kernel gives the files of a process that is not dumpable to root: proc(5) */
	u.hidden = !stat(path, &st) && st.st_uid != u.uids[1];
	return u;
}

static bool has_same_rights(const struct owner *a, const struct owner *b)
{
	return !memcmp(a->uids, b->uids, sizeof(a->uids)) &&
	       !memcmp(a->gids, b->gids, sizeof(a->gids)) && a->space == b->space &&
	       a->caps == b->caps;
}

bool owner_is(const struct owner *a, const struct owner *b)
{
	return has_same_rights(a, b) && a->hidden == b->hidden;
}

bool owner_is_us(pid_t pid)
{
	const struct owner own = owner_of(getpid()), its = owner_of(pid);

	return has_same_rights(&own, &its) && own.mounts == its.mounts && own.pids == its.pids;
}

bool owner_has_left(pid_t pid)
{
	const struct owner own = owner_of(getpid()), its = owner_of(pid);

	if (!its.known)
		return false;
	return !has_same_rights(&own, &its) || (its.mounts && its.mounts != own.mounts) ||
	       (its.pids && its.pids != own.pids);
}

bool owner_is_contained(pid_t pid)
{
	const uint64_t its = name_space(pid, "pid");

	return its && its != name_space(getpid(), "pid");
}

bool owner_is_stranger(pid_t pid)
{
	return owner_of(pid).space &&
	       !owner_is_us(pid); /* the name space is shown to who may trace */
}
