#!/usr/bin/env -S descry -s
/* Counts the functions on which a program spends its CPU time. usage: descry -s hotuser.d -c 'program' (or -p PID)
 *
 *	FUNCTION                                                      SAMPLES
 *	spin`main                                                           2
 *	spin`turn                                                         782
 */
#pragma D option quiet

profile-997
/pid == $target && arg1/
{
	@hot[ufunc(arg1)] = count();
	@all = count();
}

END
{
	printf("%-60s %8s\n", "FUNCTION", "SAMPLES");
	trunc(@hot, 30);
	printa("%-60A %@8d\n", @hot);
	printa("%@d samples\n", @all);
}
