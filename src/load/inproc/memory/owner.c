/* Reads the rights of a process from /proc, and compares them. */
#define _GNU_SOURCE
#include "load/inproc/memory/owner.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/procdir.h"
#include "base/procstatus.h"

static uint64_t hash_line(const char *line)
{
	return hash_bytes(line, strcspn(line, "\n"));
}

static uint64_t name_space(pid_t pid, const char *kind)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/%s", (int)pid, kind);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* Reads the label without the newline that some modules add. */
static void read_label(pid_t pid, char ret[OWNER_LABEL])
{
	cleanup_free char *path = xasprintf("/proc/%d/attr/current", (int)pid), *text = NULL;

	err_free(io_read_file(path, &text, NULL));
	snprintf(ret, OWNER_LABEL, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
}

static struct owner_limits limits_of(pid_t pid, const char *status)
{
	struct owner_limits l = { 0 };

	read_label(pid, l.label);
	l.seccomp = procstatus_count(status, "Seccomp", 0);
	l.filters = procstatus_count(status, "Seccomp_filters", 0);
	l.no_new_privs = procstatus_count(status, "NoNewPrivs", 0);
	return l;
}

struct owner owner_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid);
	cleanup_free char *text = procstatus_read(pid);
	static const char *const to_gain[] = { "CapInh", "CapBnd", "CapAmb" };
	struct owner u = { 0 };
	struct stat st;
	char state;

	if (!text)
		return u;
	state = *procstatus_field(text, "State");
	for (int i = 0; i < 4; i++) {
		u.uids[i] = (uint32_t)procstatus_number(text, "Uid", i);
		u.gids[i] = (uint32_t)procstatus_number(text, "Gid", i);
	}
	u.caps = procstatus_mask(text, "CapPrm");
	for (int i = 0; i < 3; i++)
		u.caps_to_gain[i] = procstatus_mask(text, to_gain[i]);
	u.groups = hash_line(procstatus_field(text, "Groups"));
	u.known = true;
	u.ended = state == 'Z' || state == 'X';
	u.space = name_space(pid, "user");
	u.mounts = name_space(pid, "mnt");
	u.pids = name_space(pid, "pid");
	u.limits = limits_of(pid, text);
	/* the kernel gives the files of a process that is not dumpable to root (proc(5)) */
	u.hidden = !stat(path, &st) && st.st_uid != u.uids[1];
	return u;
}

static bool has_same_ids(const struct owner *a, const struct owner *b)
{
	return !memcmp(a->uids, b->uids, sizeof(a->uids)) &&
	       !memcmp(a->gids, b->gids, sizeof(a->gids));
}

/* Compares the rights on files and those gained by executing a program, which ptrace(2) does not
 * check. */
static bool may_do_the_same(const struct owner *a, const struct owner *b)
{
	return a->groups == b->groups && a->caps == b->caps &&
	       !memcmp(a->caps_to_gain, b->caps_to_gain, sizeof(a->caps_to_gain));
}

static bool is_in_same_place(const struct owner *a, const struct owner *b)
{
	return a->space == b->space && a->mounts == b->mounts && a->pids == b->pids;
}

/* Returns true when the process has a filter, a label or no_new_privs that `own` does not have. */
static bool is_more_limited(const struct owner_limits *own, const struct owner_limits *its)
{
	return (its->seccomp && its->seccomp != own->seccomp) || its->filters > own->filters ||
	       its->no_new_privs > own->no_new_privs || strcmp(its->label, own->label);
}

bool owner_is_like(const struct owner *a, const struct owner *b)
{
	return has_same_ids(a, b) && may_do_the_same(a, b) && is_in_same_place(a, b) &&
	       a->hidden == b->hidden;
}

bool owner_may_share(const struct owner *a, const struct owner *b)
{
	return owner_is_like(a, b) && !is_more_limited(&b->limits, &a->limits);
}

bool owner_has_privileges(pid_t pid)
{
	const struct owner u = owner_of(pid);

	return !u.known || u.caps || !u.uids[0] || !u.uids[1] || !u.uids[2];
}

bool owner_is_privileged(void)
{
	return owner_has_privileges(getpid());
}

/* ended: a zombie has no namespaces any more. */
static bool is_us(const struct owner *own, const struct owner *its)
{
	return has_same_ids(own, its) && may_do_the_same(own, its) &&
	       (its->ended || is_in_same_place(own, its)) &&
	       !is_more_limited(&own->limits, &its->limits);
}

bool owner_is_us(pid_t pid)
{
	const struct owner own = owner_of(getpid()), its = owner_of(pid);

	return is_us(&own, &its);
}

/* The process may end while its files are read. Then the files read later contained nothing. */
bool owner_has_left(pid_t pid, uint64_t started)
{
	const struct owner own = owner_of(getpid());
	bool left = true;

	for (int i = 0; i < 2 && left; i++) {
		const struct owner its = owner_of(pid);

		left = its.known && !is_us(&own, &its) && procdir_start(pid) == started;
	}
	return left;
}

bool owner_is_contained(pid_t pid)
{
	const uint64_t its = name_space(pid, "pid");

	return its && its != name_space(getpid(), "pid");
}

bool owner_is_short_of_room(pid_t pid)
{
	const enum __rlimit_resource kinds[] = { RLIMIT_AS, RLIMIT_DATA };
	struct rlimit l;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!prlimit(pid, kinds[i], NULL, &l) && l.rlim_cur != RLIM_INFINITY)
			return true;
	return false;
}

/* descry belongs to its user also when its file gives it capabilities (setcap). */
bool owner_is_stranger(pid_t pid)
{
	const struct owner own = owner_of(getpid()), its = owner_of(pid);
	const uint64_t more = own.uids[1] ? its.caps & ~own.caps : its.caps ^ own.caps;

	/* the kernel shows the namespace only to processes that may trace it */
	return its.space && (!has_same_ids(&own, &its) || more || !is_in_same_place(&own, &its));
}
