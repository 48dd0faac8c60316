#!/usr/bin/env -S descry -s
/* Prints the number, the time and the CPU time of a process's system calls. usage: descry -s procsystime.d -c 'program' (or -p PID)
 *
 *	SYSCALL                   CALLS       ELAPSED ns           CPU ns
 *	pread64                       2              460              460
 *	write                        20           268586           268586
 *	mmap                         21            62911            62911
 *	read                         23            47387            47387
 *	openat                       32           137836           137836
 *	TOTAL                       158           601689           601689
 */
#pragma D option quiet

syscall:::entry
/pid == $target/
{
	self->start = timestamp;
	self->cpu = vtimestamp;
}

syscall:::return
/self->start/
{
	@calls[probefunc] = count();
	@elapsed[probefunc] = sum(timestamp - self->start);
	@cpu[probefunc] = sum(vtimestamp - self->cpu);
	@calls["TOTAL"] = count();
	@elapsed["TOTAL"] = sum(timestamp - self->start);
	@cpu["TOTAL"] = sum(vtimestamp - self->cpu);
	self->start = 0;
	self->cpu = 0;
}

END
{
	printf("%-20s %10s %16s %16s\n", "SYSCALL", "CALLS", "ELAPSED ns", "CPU ns");
	printa("%-20s %@10d %@16d %@16d\n", @calls, @elapsed, @cpu);
}
