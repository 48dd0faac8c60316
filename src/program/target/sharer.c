/* Finds processes that run in the memory of another one. */
#define _GNU_SOURCE
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/procdir.h"
#include "base/procstatus.h"
#include "target_private.h"

static bool has_same_memory(pid_t thread, pid_t other)
{
	return !syscall(SYS_kcmp, thread, other, KCMP_VM, 0, 0);
}

static bool waits_in_vfork(pid_t parent, pid_t child)
{
	cleanup_dir DIR *d = procdir_threads(parent);
	uint64_t pc, sp;

	for (pid_t tid; procdir_next(d, &tid);)
		if (control_vfork_child(parent, tid, &pc, &sp) == child)
			return true;
	return false;
}

static pid_t parent_of(pid_t pid)
{
	cleanup_free char *status = NULL;
	struct err *e = control_read_status(pid, &status);
	const long parent = e ? 0 : procstatus_number(status, "PPid", 0);

	err_free(e);
	return (pid_t)parent;
}

uint32_t control_memory_sharers(pid_t pid, pid_t *ret, uint32_t max)
{
	const pid_t ref = procdir_living_thread(pid);
	cleanup_dir DIR *d = opendir("/proc");
	uint32_t n = 0;

	/* Between two looks, a child of vfork(2) may execute a program. A thread that has ended has
	 * no memory, as all kernel threads; one that has memory afterwards had it before. */
	for (pid_t other; n < max && procdir_next(d, &other);)
		if (other != pid && has_same_memory(ref, other) &&
		    !waits_in_vfork(parent_of(other), other) && has_same_memory(ref, other) &&
		    !control_without_memory(pid, ref))
			ret[n++] = other;
	return n;
}
