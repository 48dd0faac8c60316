#!/usr/bin/env -S descry -s
/* Prints the number of new processes every second, and the last process number.
 *
 *	TIME                  LASTPID  PID/s
 *	2026 Nov 23 06:12:57    27593    246
 *	2026 Nov 23 06:12:58    27849    254
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
