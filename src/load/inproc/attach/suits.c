/* Finds out whether a stopped process can live with the engine's memory and programs. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/procstatus.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/memory/remote.h"
#include "load/inproc/state/process_state.h"

enum { PAGE = 4096 };

/* Returns the process's locked memory in kB. */
static uint64_t locked_kb(struct control *c)
{
	return procstatus_of(control_pid(c), "VmLck", 0);
}

struct err *attach_check_alone(pid_t pid)
{
	pid_t other;

	return control_memory_sharers(pid, &other, 1)
		       ? err_new(EPERM,
				 "process %d runs in its memory (clone(2) with CLONE_VM), and does not stop with it: use -x engine=kernel",
				 (int)other)
		       : NULL;
}

struct err *attach_check_suits(struct control *c, uint64_t page, bool *ret_no_counter)
{
	const uint64_t args[6] = { PR_GET_TSC, page }, before = locked_kb(c);
	struct err *err = remote_map(c, page, PAGE, PROT_READ | PROT_WRITE, -1, 0);
	bool locks;
	int64_t failed = -1;
	int tsc = 0;

	if (err) /* the page may be that of an attach that was killed, whose descriptors it tells */
		return err;
	locks = locked_kb(c) > before;
	err = control_syscall(c, SYS_prctl, args, &failed);
	if (!err && !failed)
		err = control_read(c, page, &tsc, sizeof(tsc));
	err_free(remote_call(c, "munmap", SYS_munmap, page, PAGE, 0, NULL));
	if (err)
		return err;
	if (locks)
		return err_new(
			EPERM,
			"it locks all its memory (mlockall(2)), and descry's would be locked with it: use -x engine=kernel");
	*ret_no_counter = tsc == PR_TSC_SIGSEGV;
	return NULL;
}
