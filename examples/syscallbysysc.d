#!/usr/bin/env -S descry -s
/* How often each system call is made, on the whole machine. ^C prints.
 *
 *	  openat                    17
 *	  read                     305
 */
#pragma D option quiet

BEGIN
{
	printf("system calls; ^C ends\n");
}

syscall:::entry
/pid != $pid/
{
	@[probefunc] = count();
}

END
{
	printa("  %-24s %@10d\n", @);
}
