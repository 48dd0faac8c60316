#!/usr/bin/env -S descry -s
/* Where the kernel spends its CPU time, by function. ^C prints.
 *
 *	FUNCTION                                             SAMPLES      %
 *	vmlinux`copy_user_generic                                412
 */
#pragma D option quiet

BEGIN
{
	printf("sampling the kernel; ^C ends\n");
}

profile-997
/arg0/
{
	@hot[func(arg0)] = count();
	@all = count();
}

END
{
	printf("%-52s %8s\n", "FUNCTION", "SAMPLES");
	trunc(@hot, 30);
	printa("%-52a %@8d\n", @hot);
	printa("%@d samples\n", @all);
}
