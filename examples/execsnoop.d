#!/usr/bin/env -S descry -s
/* Programs as they start, with their arguments. */
#pragma D option quiet

BEGIN
{
	printf("%-20s %-7s %-7s %s\n", "TIME", "PID", "PPID", "ARGUMENTS");
}

proc:::exec-success
{
	printf("%-20Y %-7d %-7d %s\n", walltimestamp, pid, ppid, curpsinfo->pr_psargs);
}
