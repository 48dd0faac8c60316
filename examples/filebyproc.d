#!/usr/bin/env -S descry -s
/* Counts the files that each program opens. ^C prints.
 *
 *	COMMAND             COUNT FILE
 *	cat                     2 /tmp/demo/text
 */
#pragma D option quiet

syscall::open:entry
/pid != $pid/
{
	self->path = arg0;
}

syscall::openat:entry, syscall::openat2:entry
/pid != $pid/
{
	self->path = arg1;
}

/* The kernel has read the path by now, so that its page is in memory. */
syscall::open:return, syscall::openat:return, syscall::openat2:return
/self->path/
{
	@[execname, copyinstr(self->path)] = count();
	self->path = 0;
}

END
{
	printf("%-16s %8s %s\n", "COMMAND", "COUNT", "FILE");
	printa("%-16s %@8d %s\n", @);
}
