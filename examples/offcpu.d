#!/usr/bin/env -S descry -s
/* Where a program waits: time off CPU by user stack. usage: descry -s offcpu.d -c 'program' (or -p PID) */
#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::on-cpu
/self->off/
{
	@waits[ustack(20)] = sum((timestamp - self->off) / 1000);
	self->off = 0;
}

END
{
	printf("microseconds off CPU\n");
	trunc(@waits, 20);
	printa("%k%@16d\n\n", @waits);
}
