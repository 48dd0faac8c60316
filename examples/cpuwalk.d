#!/usr/bin/env -S descry -s
/* On which CPUs each program runs: does it spread, or stay on one? ^C prints.
 *
 *	  8411 tracee
 *	           value  ------------- Distribution ------------- count
 *	             < 0 |                                         0
 *	               0 |@@@@@@@@@@@@@@@@@@@@@@                   412
 *	               1 |@@@@@@@@@@@@@@@@@@                       350
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
