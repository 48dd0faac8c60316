#!/usr/bin/env -S descry -s
/* Prints each read and write when it ends: the process, the bytes, the file. A negative result is the errno.
 * usage: descry -s rwsnoop.d ['program']; without a name, every program but descry
 *
 *	    PID COMMAND          D    BYTES FILE
 *	  19082 cat              R     1000 /tmp/demo/text
 *	  19082 cat              R        0 /tmp/demo/text
 */
#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	printf("%7s %-16s %1s %8s %s\n", "PID", "COMMAND", "D", "BYTES", "FILE");
}

syscall::read:entry, syscall::readv:entry, syscall::pread64:entry, syscall::preadv:entry,
syscall::write:entry, syscall::writev:entry, syscall::pwrite64:entry, syscall::pwritev:entry
/pid != $pid && ($$1 == "" || execname == $$1)/
{
	self->file = fds[arg0].fi_pathname;
	self->way = "R";
	self->inside = 1;
}

syscall::write:entry, syscall::writev:entry, syscall::pwrite64:entry, syscall::pwritev:entry
/self->inside/
{
	self->way = "W";
}

syscall::read:return, syscall::readv:return, syscall::pread64:return, syscall::preadv:return,
syscall::write:return, syscall::writev:return, syscall::pwrite64:return, syscall::pwritev:return
/self->inside/
{
	printf("%7d %-16s %1s %8d %s\n", pid, execname, self->way, (int)arg0, self->file);
	self->file = 0;
	self->way = 0;
	self->inside = 0;
}
