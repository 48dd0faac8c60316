#!/usr/bin/env -S descry -s
/* Prints each system call of a program when it ends: arguments, result, errno and microseconds.
 * usage: descry -s dtruss.d -c 'program' (or -p PID)
 *
 *	     PID/THRD        USECS CALL
 *	   25839/25839           3 openat(0xffffff9c, "/tmp/demo/text", 0x0) = 3
 *	   25839/25839           5 read(0x3, 0x7f61f6cc1000, 0x20000) = 1000
 *	   25839/25839           0 read(0x3, 0x7f61f6cc1000, 0x20000) = 0
 *	   25839/25839           1 openat(0xffffff9c, "/nonexistent", 0x0) = -1 errno 2
 */
#pragma D option quiet

BEGIN
{
	printf("%8s/%-8s %8s %s\n", "PID", "THRD", "USECS", "CALL");
}

syscall:::entry
/pid == $target/
{
	self->start = timestamp;
	self->a0 = arg0;
	self->a1 = arg1;
	self->a2 = arg2;
}

/* The argument that is a path. The script reads it when the call has ended, because it is in memory then. */
syscall::open:entry, syscall::stat:entry, syscall::lstat:entry, syscall::access:entry, syscall::unlink:entry,
syscall::readlink:entry, syscall::chdir:entry, syscall::mkdir:entry, syscall::rmdir:entry
/pid == $target/
{
	self->at = 1;
}

syscall::openat:entry, syscall::newfstatat:entry, syscall::statx:entry, syscall::faccessat:entry,
syscall::faccessat2:entry, syscall::unlinkat:entry, syscall::readlinkat:entry, syscall::mkdirat:entry
/pid == $target/
{
	self->at = 2;
}

syscall:::return
/self->start && self->at == 0/
{
	printf("%8d/%-8d %8d %s(0x%x, 0x%x, 0x%x) = %d", pid, tid, (timestamp - self->start) / 1000, probefunc,
	    self->a0, self->a1, self->a2, (int64_t)arg0 < 0 ? -1 : arg0);
}

syscall:::return
/self->start && self->at == 1/
{
	printf("%8d/%-8d %8d %s(\"%S\", 0x%x, 0x%x) = %d", pid, tid, (timestamp - self->start) / 1000, probefunc,
	    copyinstr(self->a0), self->a1, self->a2, (int64_t)arg0 < 0 ? -1 : arg0);
}

syscall:::return
/self->start && self->at == 2/
{
	printf("%8d/%-8d %8d %s(0x%x, \"%S\", 0x%x) = %d", pid, tid, (timestamp - self->start) / 1000, probefunc,
	    (uint32_t)self->a0, copyinstr(self->a1), self->a2, (int64_t)arg0 < 0 ? -1 : arg0);
}

syscall:::return
/self->start/
{
	printf("%s\n", errno != 0 ? strjoin(" errno ", lltostr(errno)) : "");
	self->start = 0;
	self->a0 = 0;
	self->a1 = 0;
	self->a2 = 0;
	self->at = 0;
}
