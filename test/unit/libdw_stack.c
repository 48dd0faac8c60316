#include "libdw_stack.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

static int on_frame(Dwfl_Frame *f, void *arg)
{
	struct frames *fr = arg;
	Dwarf_Addr pc;

	if (fr->n == LIBDW_FRAMES || !dwfl_frame_pc(f, &pc, NULL))
		return DWARF_CB_ABORT;
	fr->pc[fr->n++] = pc;
	return DWARF_CB_OK;
}

void libdw_stack(pid_t pid, struct frames *ret)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo };
	Dwfl *d = dwfl_begin(&callbacks);

	ret->n = 0;
	dwfl_report_begin(d);
	dwfl_linux_proc_report(d, pid);
	dwfl_report_end(d, NULL, NULL);
	ret->error = dwfl_linux_proc_attach(d, pid, true) ||
		     dwfl_getthread_frames(d, pid, on_frame, ret);
	dwfl_end(d);
}
