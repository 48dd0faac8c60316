#!/usr/bin/env -S descry -s
/* Sums the milliseconds that a program waits off the CPU, by its own stack. Step 6 of doc/tutorial.md.
 * usage: descry -s waits.d -c 'program' (or -p PID) */
#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::on-cpu
/self->off/
{
	@ms[ustack(8)] = sum((timestamp - self->off) / 1000000);
	self->off = 0;
}
