#!/usr/bin/env -S descry -s
/* Who ends the waits of a program: time off CPU by the stacks of those that woke it.
 * usage: descry -s wakeup.d -c 'program' | descry flame --wakeup > wakeup.svg */
#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	off[tid] = timestamp;
}

sched:::wakeup
/args[1]->pr_pid == $target && off[args[0]->pr_lwpid]/
{
	@[args[1]->pr_fname, stack(), ustack(), execname] =
	    sum((timestamp - off[args[0]->pr_lwpid]) / 1000);
	off[args[0]->pr_lwpid] = 0;
}
