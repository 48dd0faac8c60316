#!/usr/bin/env -S descry -s
/* Prints a program's CPU time by system call, and its whole time on CPU. usage: descry -s lx-sys.d top
 *
 *	  close                                                         17796
 *	  mmap                                                          61081
 *	  openat                                                       132118
 *	  read                                                         321850
 *	  fsync                                                        764135
 *	  write                                                       2602696
 *	  - all syscalls -                                            3944054
 *	  - total -                                                   5182843
 */
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
