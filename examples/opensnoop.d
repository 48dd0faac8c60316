#!/usr/bin/env -S descry -s
/* Prints each file that is opened: the process, the result, the path. A negative result is the errno.
 *
 *	PID     COMMAND            FD PATH
 *	15420   cat                 3 /tmp/demo/text
 *	15420   cat                -2 /nonexistent
 */
#pragma D option quiet

BEGIN
{
	printf("%-7s %-16s %4s %s\n", "PID", "COMMAND", "FD", "PATH");
}

syscall::open:entry
{
	self->path = copyinstr(arg0);
	self->opening = 1;
}

syscall::openat:entry,
syscall::openat2:entry
{
	self->path = copyinstr(arg1);
	self->opening = 1;
}

syscall::open:return,
syscall::openat:return,
syscall::openat2:return
/self->opening/
{
	printf("%-7d %-16s %4d %s\n", pid, execname, (int)arg0, self->path);
	self->path = 0;
	self->opening = 0;
}
