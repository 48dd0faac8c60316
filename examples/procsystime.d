#!/usr/bin/env -S descry -s
/* A process's system calls: how many, time taken, CPU time. usage: descry -s procsystime.d -c 'program' (or -p PID) */
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
