#!/usr/bin/env -S descry -s
/* Counts the files that each program opens, also missing files. Step 3 of doc/tutorial.md. */
#pragma D option quiet

syscall::openat:entry
{
	self->path = arg1;
}

syscall::openat:return
/self->path/
{
	@[execname, copyinstr(self->path), errno ? "failed" : "opened"] = count();
	self->path = 0;
}

END
{
	printa("%-16s %-50s %-6s %@d\n", @);
}
