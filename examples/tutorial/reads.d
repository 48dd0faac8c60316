#!/usr/bin/env -S descry -s
/* Counts how long read() takes, by program, in microseconds. Step 4 of doc/tutorial.md. */
syscall::read:entry
{
	self->began = timestamp;
}

syscall::read:return
/self->began/
{
	@us[execname] = quantize((timestamp - self->began) / 1000);
	self->began = 0;
}
