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

struct owner owner_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid), *text = NULL;
	cleanup_free char *space = xasprintf("/proc/%d/ns/user", (int)pid);
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
	u.space = stat(space, &st) ? 0 : st.st_ino;
	return u;
}

bool owner_is(const struct owner *a, const struct owner *b)
{
	return !memcmp(a->uids, b->uids, sizeof(a->uids)) &&
	       !memcmp(a->gids, b->gids, sizeof(a->gids)) && a->space == b->space;
}

bool owner_is_us(pid_t pid)
{
	const struct owner own = owner_of(getpid()), its = owner_of(pid);

	return owner_is(&own, &its) && !(its.caps & ~own.caps);
}

bool owner_is_stranger(pid_t pid)
{
	return owner_of(pid).space &&
	       !owner_is_us(pid); /* the name space is shown to who may trace */
}
