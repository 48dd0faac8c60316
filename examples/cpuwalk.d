#!/usr/bin/env -S descry -s
/* On which CPUs each program runs: does it spread, or stay on one? ^C prints.
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

/* Thread 0 is a CPU that has nothing to do. */
profile-999
/tid/
{
	@[pid, execname] = lquantize(cpu, 0, 128, 1);
}

END
{
	printa("  %d %s\n%@d\n", @);
}
