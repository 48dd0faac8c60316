#!/usr/bin/env -S descry -s
/* The ten most frequent system calls, every second.
 *
 *	2026 Jan  5 10:31:11, load 0.52
 *	  SYSCALL                  COUNT
 *	  read                       305
 */
#pragma D option quiet

syscall:::entry
/pid != $pid/
{
	@[probefunc] = count();
}

tick-1s
{
	trunc(@, 10);
	printf("%Y\n  %-20s %10s\n", walltimestamp, "SYSCALL", "COUNT");
	printa("  %-20s %@10d\n", @);
	trunc(@);
}
