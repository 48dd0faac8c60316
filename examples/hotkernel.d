#!/usr/bin/env -S descry -s
/* Counts the functions on which the kernel spends its CPU time. ^C prints.
 *
 *	vmlinux`__d_lookup_rcu                                      5
 *	vmlinux`_raw_spin_unlock_irqrestore                         5
 *	vmlinux`_raw_spin_lock                                      7
 *	vmlinux`iowrite16                                           8
 *	vmlinux`exc_page_fault                                      9
 *	vmlinux`handle_softirqs                                    11
 *	vmlinux`read_zero                                          67
 *	200 samples
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
