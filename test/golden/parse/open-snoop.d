//@ cmd: -d parse
#!/usr/sbin/dtrace -s
/*
 * Which files are opened, by whom, and with what result.
 */
#pragma D option quiet
#pragma D option switchrate=10hz

dtrace:::BEGIN
{
	printf("%-20s %6s %6s %4s %3s %s\n", "TIME", "UID", "PID", "FD", "ERR", "PATH");
}

syscall::open:entry, syscall::openat:entry
{
	self->path = probefunc == "open" ? arg0 : arg1;
	self->ok = 1;
}

syscall::open:return, syscall::openat:return
/self->ok/
{
	printf("%-20Y %6d %6d %4d %3d %s\n", walltimestamp, uid, pid,
	    (int)arg0, (int)arg0 == -1 ? errno : 0, copyinstr(self->path));
	self->path = 0;
	self->ok = 0;
}
