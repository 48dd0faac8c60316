#!/usr/bin/env -S descry -s
/* How many system calls each program makes. ^C prints.
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
