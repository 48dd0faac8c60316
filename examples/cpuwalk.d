#!/usr/bin/env -S descry -s
/* Counts the CPUs on which each program runs: does it use several CPUs, or stay on one? ^C prints.
 *
 *	  4023 spin
 *
 *	           value  ------------- Distribution ------------- count
 *	             < 0 |                                         0
 *	               0 |@@@@@@@@@@                               243
 *	               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           778
 *	               2 |                                         0
 */
#pragma D option quiet

BEGIN
{
	printf("sampling; ^C ends\n");
}

/* Thread 0 runs on a CPU that is idle. */
profile-999
/tid/
{
	@[pid, execname] = lquantize(cpu, 0, 128, 1);
}

END
{
	printa("  %d %s\n%@d\n", @);
}
