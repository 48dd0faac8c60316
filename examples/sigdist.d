#!/usr/bin/env -S descry -s
/* Counts signals by sender, receiver and number. ^C prints.
 *
 *	SENDER           RECEIVER          SIG    COUNT
 *	timeout          sleep              10        2
 *	timeout          sleep              18        2
 */
#pragma D option quiet

proc:::signal-send
{
	@[execname, args[1]->pr_fname, args[2]] = count();
}

END
{
	printf("%-16s %-16s %4s %8s\n", "SENDER", "RECEIVER", "SIG", "COUNT");
	printa("%-16s %-16s %4d %@8d\n", @);
}
