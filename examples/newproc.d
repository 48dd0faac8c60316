#!/usr/bin/env -S descry -s
/* Prints each new program when it ends: its time from exec to exit, and how it ended.
 *
 *	     PID     PPID     MSECS EXIT COMMAND
 *	   24848    24846       201    0 sleep 0.2
 *	   24880    24846         0    3 sh -c exit 3
 *	   24846    24611       203    3 sh -c sleep 0.2; sh -c 'exit 3'
 */
#pragma D option quiet

BEGIN
{
	printf("%8s %8s %9s %4s %s\n", "PID", "PPID", "MSECS", "EXIT", "COMMAND");
}

proc:::exec-success
{
	began[pid] = timestamp;
	line[pid] = curpsinfo->pr_psargs;
}

/* args[0] is CLD_EXITED (1), CLD_KILLED (2) or CLD_DUMPED (3). */
proc:::exit
/began[pid]/
{
	printf("%8d %8d %9d %4d %s\n", pid, ppid, (timestamp - began[pid]) / 1000000,
	    args[0] == 1 ? (curpsinfo->pr_wstat >> 8) & 0xff : -(curpsinfo->pr_wstat & 0x7f), line[pid]);
	began[pid] = 0;
	line[pid] = 0;
}
