#!/usr/bin/env -S descry -s
/* Counts system calls that fail, by program, call and errno.
 *
 *	COMMAND          SYSCALL              ERRNO    COUNT
 *	cat              access                   2        1
 *	cat              read                    21        1
 *	cat              openat                   2       17
 */
#pragma D option quiet

syscall:::return
/errno/
{
	@[execname, probefunc, errno] = count();
}

END
{
	printf("%-16s %-20s %5s %8s\n", "COMMAND", "SYSCALL", "ERRNO", "COUNT");
	printa("%-16s %-20s %5d %@8d\n", @);
}
