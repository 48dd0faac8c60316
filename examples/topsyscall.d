#!/usr/bin/env -S descry -s
/* Prints the ten most frequent system calls, every second.
 *
 *	2026 Nov 23 06:13:46
 *	  SYSCALL                   COUNT
 *	  read                       3253
 *	  close                      3866
 *	  openat                     4215
 *	  newfstatat                 5235
 *	  pread64                    7691
 *	  lgetxattr                  9157
 *	  getxattr                   9976
 *	  statx                     10006
 *	  sched_yield               36969
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
