#!/usr/bin/env -S descry -s
/* Counts how long threads wait for the kernel's locks, by program and kind of lock. ^C prints.
 *
 *	  python3 spin-spin, nanoseconds
 *
 *	           value  ------------- Distribution ------------- count
 *	             512 |                                         0
 *	            1024 |                                         2
 *	            2048 |                                         0
 *	            4096 |                                         0
 *	            8192 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@             133
 *	           16384 |@@@@@@@@@@@                              53
 *	           32768 |                                         0
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
