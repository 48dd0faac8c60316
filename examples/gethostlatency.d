#!/usr/bin/env -S descry -s
/* Prints how long a program waits for each host name. usage: descry -s gethostlatency.d -c 'program' (or -p PID)
 *
 *	    PID COMMAND                 MS NAME
 *	  20701 python3              1.584 localhost
 */
#pragma D option quiet
#pragma D option switchrate=10hz

BEGIN
{
	printf("%7s %-16s %9s %s\n", "PID", "COMMAND", "MS", "NAME");
}

pid$target:libc:getaddrinfo:entry,
pid$target:libc:gethostbyname:entry,
pid$target:libc:gethostbyname2:entry
{
	self->name = copyinstr(arg0);
	self->start = timestamp;
}

pid$target:libc:getaddrinfo:return,
pid$target:libc:gethostbyname:return,
pid$target:libc:gethostbyname2:return
/self->start/
{
	printf("%7d %-16s %5d.%03d %s\n", pid, execname, (timestamp - self->start) / 1000000,
	    (timestamp - self->start) / 1000 % 1000, self->name);
	self->start = 0;
	self->name = 0;
}
