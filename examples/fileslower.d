#!/usr/bin/env -S descry -s
/* Prints reads and writes of files that take longer than a number of milliseconds. usage: descry -s fileslower.d 10
 *
 *	    PID COMMAND                BYTES        MS FILE
 *	  20599 cat              R         1       197 /tmp/demo/fifo
 */
#pragma D option quiet
#pragma D option defaultargs
#pragma D option switchrate=10hz

BEGIN
{
	printf("%7s %-16s %1s %9s %9s %s\n", "PID", "COMMAND", "", "BYTES", "MS", "FILE");
}

syscall::read:entry,
syscall::pread64:entry,
syscall::write:entry,
syscall::pwrite64:entry
/fds[arg0].fi_fs != "sockfs" && fds[arg0].fi_fs != "pipefs"/
{
	self->start = timestamp;
	self->fd = arg0;
}

syscall::read:return,
syscall::pread64:return,
syscall::write:return,
syscall::pwrite64:return
/self->start && timestamp - self->start >= ($1 ? $1 : 10) * 1000000/
{
	printf("%7d %-16s %1s %9d %9d %s\n", pid, execname, probefunc == "read" || probefunc == "pread64" ? "R" : "W",
	    arg0, (timestamp - self->start) / 1000000, fds[self->fd].fi_pathname);
}

syscall::read:return,
syscall::pread64:return,
syscall::write:return,
syscall::pwrite64:return
/self->start/
{
	self->start = 0;
	self->fd = 0;
}
