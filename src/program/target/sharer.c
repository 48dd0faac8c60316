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

/* Returns true when a thread of the parent waits in vfork(2) for the child. *waited: the children
 * that threads were seen to wait for. Such a wait lasts as long as the child has the parent's
 * memory, and a thousand threads may wait for a child each. */
static bool waits_in_vfork(pid_t parent, pid_t child, struct hash *waited)
{
	cleanup_dir DIR *d = NULL;
	uint64_t pc, sp;

	if (hash_get(waited, &child, sizeof(child)))
		return true;
	d = procdir_threads(parent);
	for (pid_t tid; procdir_next(d, &tid);) {
		const pid_t one = control_vfork_child(parent, tid, &pc, &sp);

		if (one)
			(void)hash_put(waited, &one, sizeof(one), NULL);
	}
	return hash_get(waited, &child, sizeof(child));
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
	struct hash waited = { 0 };
	uint32_t n = 0;

	/* Between two looks, a child of vfork(2) may execute a program. A thread that has ended has
	 * no memory, as all kernel threads; one that has memory afterwards had it before. */
	for (pid_t other; n < max && procdir_next(d, &other);)
		if (other != pid && has_same_memory(ref, other) &&
		    !waits_in_vfork(parent_of(other), other, &waited) &&
		    has_same_memory(ref, other) && !control_without_memory(pid, ref))
			ret[n++] = other;
	hash_fini(&waited);
	return n;
}
