#!/usr/bin/env -S descry -s
/* Who waits, and who woke it: each wait with its stacks, each wake-up with the waker's.
 * usage: descry -s chain.d -c 'program' | descry flame --chain > chain.svg */
#pragma D option quiet
#pragma D option bufsize=16m

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::wakeup
/args[1]->pr_pid == $target/
{
	printf("wakeup %d %s", args[0]->pr_lwpid, execname);
	stack();
	ustack();
}

sched:::on-cpu
/self->off/
{
	printf("offcpu %d %d %s", tid, (timestamp - self->off) / 1000, execname);
	stack();
	ustack();
	self->off = 0;
}
