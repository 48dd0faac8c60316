#!/usr/bin/env -S descry -s
/* Prints each program that starts, with its arguments.
 *
 *	TIME                 PID     PPID    ARGUMENTS
 *	2026 Nov 23 06:15:01 14915   14833   sh -c ls -l /tmp/demo >/dev/null; cat /tmp/demo/text >/dev/null
 *	2026 Nov 23 06:15:01 14916   14915   ls -l /tmp/demo
 *	2026 Nov 23 06:15:01 14917   14915   cat /tmp/demo/text
 */
#pragma D option quiet

BEGIN
{
	printf("%-20s %-7s %-7s %s\n", "TIME", "PID", "PPID", "ARGUMENTS");
}

proc:::exec-success
{
	printf("%-20Y %-7d %-7d %s\n", walltimestamp, pid, ppid, curpsinfo->pr_psargs);
}
