#!/usr/bin/env -S descry -s
/* Where programs wait: time off CPU by program, kernel stack and user stack, the ten longest. ^C prints. A name chooses
 * one program. Threads that never come back to a CPU meanwhile are not in it. usage: descry -s offcputime.d [name]
 */
#pragma D option quiet
#pragma D option defaultargs

sched:::off-cpu
/pid && ($$1 == "" || execname == $$1)/
{
	self->off = timestamp;
}

sched:::on-cpu
/self->off/
{
	@waits[execname, stack(12), ustack(12)] = sum((timestamp - self->off) / 1000);
	self->off = 0;
}

END
{
	printf("microseconds off CPU\n");
	trunc(@waits, 10);
	printa("%s\n%k%k%@16d\n\n", @waits);
}
