#!/usr/bin/env -S descry -s
/* CPU time of a program by system call, and its time on CPU in all. usage: descry -s lx-sys.d top */
#pragma D option quiet

syscall:::entry
/execname == $$1/
{
	self->ts = vtimestamp;
}

syscall:::return
/self->ts/
{
	@[probefunc] = sum(vtimestamp - self->ts);
	@["- all syscalls -"] = sum(vtimestamp - self->ts);
	self->ts = 0;
}

sched:::on-cpu
/execname == $$1/
{
	self->on = timestamp;
}

sched:::off-cpu
/self->on/
{
	@["- total -"] = sum(timestamp - self->on);
	self->on = 0;
}
