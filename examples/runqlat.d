#!/usr/bin/env -S descry -s
/* How long a thread that has been woken waits for a CPU. */
sched:::wakeup
{
	woken[args[0]->pr_lwpid] = timestamp;
}

sched:::on-cpu
/woken[tid]/
{
	@["microseconds from wakeup to CPU"] = quantize((timestamp - woken[tid]) / 1000);
	woken[tid] = 0;
}
