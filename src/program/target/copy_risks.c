/* Checks whether a copy by clone(2) would be a risk to a process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/meminfo.h"
#include "base/memgroup.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "target_private.h"

enum { FILES_MAX = 1 << 16, MAPPINGS_MS = 1000 };

/* --- files --- */

static bool is_direct(pid_t pid, pid_t fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fdinfo/%d", pid, fd), *text = NULL;
	size_t n = 0;
	struct err *e = io_read_file(path, &text, &n);
	long flags = e ? 0 : strtol(procstatus_field(text, "flags"), NULL, 8);

	err_free(e);
	return flags > 0 && (flags & O_DIRECT);
}

/* Returns true when a file is open for direct reads: a device may be writing to pages of which the
 * process would get copies at its next write, as open(2) warns. */
static bool reads_directly(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/fdinfo", pid);
	cleanup_dir DIR *d = opendir(path);
	uint32_t n = 0;

	for (pid_t fd; d && procdir_next(d, &fd);)
		if (n++ > FILES_MAX || is_direct(pid, fd))
			return true;
	return !d;
}

/* --- mappings --- */

struct flags_seen {
	space_range_vec *absent;
	bool served;
};

static void look_at_flags(void *arg, uint64_t start, uint64_t end, const char *flags)
{
	struct flags_seen *seen = arg;

	/* userfaultfd(2): missing pages, writes, minor faults */
	seen->served |= mapping_has_flag(flags, "um") || mapping_has_flag(flags, "uw") ||
			mapping_has_flag(flags, "ui");
	/* MADV_DONTFORK, MADV_WIPEONFORK */
	if (mapping_has_flag(flags, "dc") || mapping_has_flag(flags, "wf"))
		vec_push(seen->absent, (struct space_range){ start, end });
}

/* Lists the mappings that a copy does not have. clone(2) waits for the server of a userfaultfd(2),
 * which may be a thread of the process. */
static const char *look_at_mappings(pid_t pid, space_range_vec *ret)
{
	struct flags_seen seen = { .absent = ret };

	if (err_drop(mappings_flags(pid, MAPPINGS_MS, look_at_flags, &seen)))
		return "its mappings cannot be read in time";
	return seen.served ? "it has memory that userfaultfd(2) serves" : NULL;
}

/* --- memory --- */

/* A page that the process writes to while the copy is there takes memory a second time; a page of
 * the copy that is read is copied, too. */
static const char *look_at_memory(pid_t pid)
{
	cleanup_free char *status = NULL;
	struct err *e = control_read_status(pid, &status);
	const long kb = e ? 0 : procstatus_number(status, "RssAnon", 0);
	const uint64_t has = kb > 0 ? (uint64_t)kb << 10 : 0, room = meminfo_available();

	err_free(e);
	if (room && room / 2 < has)
		return "this machine has too little memory available";
	return memgroup_room(pid) < has ? "its control group has too little memory left" : NULL;
}

const char *control_copy_refused(pid_t pid, space_range_vec *ret_absent)
{
	const char *why = NULL;

	if (syscall(SYS_close_range, ~0u, ~0u, 0) < 0)
		why = "this kernel has no close_range(2)";
	else if (control_thread_state(pid, pid) == 'T')
		why = "it is stopped";
	else if (control_any_filtered(pid))
		why = "it filters its system calls";
	else if (reads_directly(pid))
		why = "it has a file open with O_DIRECT";
	return why ?: look_at_memory(pid) ?: look_at_mappings(pid, ret_absent);
}
