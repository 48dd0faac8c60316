#!/usr/bin/env -S descry -s
/* Counts the calls of each system call on the whole machine. ^C prints.
 *
 *	  read                           6234
 *	  openat                         6245
 *	  kill                           6647
 *	  pread64                        8355
 *	  lgetxattr                      9157
 *	  getxattr                       9976
 *	  statx                         10006
 *	  newfstatat                    13610
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
