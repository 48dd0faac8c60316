#!/usr/bin/env -S descry -s
/* How long threads waited for the kernel's locks, by program and kind of lock. ^C prints.
 *
 *	  stress adaptive-block, nanoseconds
 *	           value  ------------- Distribution ------------- count
 *	            1024 |                                         0
 *	            2048 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 7
 */
#pragma D option quiet

BEGIN
{
	printf("waits for kernel locks; ^C ends\n");
}

lockstat:::adaptive-block, lockstat:::adaptive-spin, lockstat:::spin-spin, lockstat:::rw-block, lockstat:::rw-spin
{
	@[execname, probename] = quantize(arg1);
	@sum = sum(arg1);
	@count = count();
}

END
{
	printa("  %s %s, nanoseconds\n%@d\n", @);
	printa("waits: %@d, ", @count);
	printa("%@d ns in all\n", @sum);
}
