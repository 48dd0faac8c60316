#!/usr/bin/env -S descry -s
/* Which files each program opens, and how often. ^C prints.
 *
 *	COMMAND             COUNT FILE
 *	cat                     1 /etc/passwd
 */
#pragma D option quiet

syscall::open:entry
/pid != $pid/
{
	@[execname, copyinstr(arg0)] = count();
}

syscall::openat:entry, syscall::openat2:entry
/pid != $pid/
{
	@[execname, copyinstr(arg1)] = count();
}

END
{
	printf("%-16s %8s %s\n", "COMMAND", "COUNT", "FILE");
	printa("%-16s %@8d %s\n", @);
}
