#!/usr/bin/env -S descry -s
/* Prints each system call that looks a file up: the process, the call, its errno, the path.
 * usage: descry -s statsnoop.d ['program']; without a name, every program but descry
 *
 *	    PID COMMAND          CALL          ERR PATH
 *	   3186 ls               statx           2 /nonexistent
 *	   3186 ls               statx           0 /tmp/demo
 */
#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	printf("%7s %-16s %-12s %4s %s\n", "PID", "COMMAND", "CALL", "ERR", "PATH");
}

syscall::stat:entry, syscall::lstat:entry, syscall::access:entry, syscall::readlink:entry
/pid != $pid && ($$1 == "" || execname == $$1)/
{
	self->path = arg0;
}

syscall::newfstatat:entry, syscall::statx:entry, syscall::faccessat:entry, syscall::faccessat2:entry,
syscall::readlinkat:entry
/pid != $pid && ($$1 == "" || execname == $$1)/
{
	self->path = arg1;
}

syscall::stat:return, syscall::lstat:return, syscall::access:return, syscall::readlink:return,
syscall::newfstatat:return, syscall::statx:return, syscall::faccessat:return, syscall::faccessat2:return,
syscall::readlinkat:return
/self->path/
{
	printf("%7d %-16s %-12s %4d %s\n", pid, execname, probefunc, errno, copyinstr(self->path));
	self->path = 0;
}
