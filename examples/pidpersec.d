#!/usr/bin/env -S descry -s
/* New processes every second, and the last process number given.
 *
 *	TIME                  LASTPID  PID/s
 *	2026 Jan  5 10:31:11     8411     17
 */
#pragma D option quiet

BEGIN
{
	printf("%-20s %8s %6s\n", "TIME", "LASTPID", "PID/s");
	made = 0;
	last = 0;
}

proc:::create
{
	made++;
	last = args[0]->pr_pid;
}

tick-1s
{
	printf("%-20Y %8d %6d\n", walltimestamp, last, made);
	made = 0;
}
