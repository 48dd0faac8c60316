#!/usr/bin/env -S descry -s
/* Prints the activity of memory and CPUs every second: page faults of programs and of the kernel, copies of shared
 * pages, KB in and out of disks, reclaim, system calls, switches, new processes.
 *
 *	 FAULTS    COW KERNEL   KB IN  KB OUT   SCAN SYSCALLS SWITCHES   FORKS
 *	  41895   9439   3457     266     298      0   991424     8232     128
 *	  43216   9648   5561      91    5033      0  1788778     4243     113
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %6s %6s %7s %7s %6s %8s %8s %7s\n", "FAULTS", "COW", "KERNEL", "KB IN", "KB OUT", "SCAN",
	    "SYSCALLS", "SWITCHES", "FORKS");
}

vminfo:::as_fault { @faults = sum(arg0); }
vminfo:::cow_fault { @cow = sum(arg0); }
vminfo:::kernel_asflt { @kernel = sum(arg0); }
vminfo:::pgpgin { @in = sum(arg0); }
vminfo:::pgpgout { @out = sum(arg0); }
vminfo:::scan { @scan = sum(arg0); }
syscall:::entry { @calls = sum(1); }
sched:::on-cpu { @switches = sum(1); }
proc:::create { @forks = sum(1); }

/* Makes descry print an aggregation without events too. */
BEGIN, tick-1s
{
	@faults = sum(0);
	@cow = sum(0);
	@kernel = sum(0);
	@in = sum(0);
	@out = sum(0);
	@scan = sum(0);
	@calls = sum(0);
	@switches = sum(0);
	@forks = sum(0);
}

tick-1s
{
	printa("%@7d %@6d %@6d %@7d %@7d %@6d %@8d %@8d %@7d\n", @faults, @cow, @kernel, @in, @out, @scan, @calls,
	    @switches, @forks);
	clear(@faults);
	clear(@cow);
	clear(@kernel);
	clear(@in);
	clear(@out);
	clear(@scan);
	clear(@calls);
	clear(@switches);
	clear(@forks);
}
