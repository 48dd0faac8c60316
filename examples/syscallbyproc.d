#!/usr/bin/env -S descry -s
/* Counts the system calls of each program. ^C prints.
 *
 *	  dd                              165
 *	  ls                             5457
 */
#pragma D option quiet

BEGIN
{
	printf("system calls; ^C ends\n");
}

syscall:::entry
/pid != $pid/
{
	@[execname] = count();
}

END
{
	printa("  %-24s %@10d\n", @);
}
