//@ cmd: -d parse
/* How long a thread waits for a CPU after it was made runnable. */
#pragma D option quiet

sched:::enqueue
{
	start[args[0]->pr_lwpid, args[1]->pr_pid, args[2]->cpu_id] = timestamp;
}

sched:::dequeue
/(this->start = start[args[0]->pr_lwpid, args[1]->pr_pid, args[2]->cpu_id]) != 0/
{
	@avg["average ns on CPU", args[2]->cpu_id] = avg(timestamp - this->start);
	@dist[args[2]->cpu_id] = quantize(timestamp - this->start);
	start[args[0]->pr_lwpid, args[1]->pr_pid, args[2]->cpu_id] = 0;
}

profile:::tick-10sec,
END
{
	normalize(@avg, 1000);
	printa(@avg); printa(@dist);
	clear(@avg); clear(@dist);
}
