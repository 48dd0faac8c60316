#!/usr/bin/env -S descry -s
/* Prints each process that becomes another user, by a successful setuid(2) or similar call.
 *
 *	    UID    SUID     PPID      PID COMMAND          CALL
 *	      0   65534     2463     2464 python3          setuid
 */
#pragma D option quiet

BEGIN
{
	printf("%7s %7s %8s %8s %-16s %s\n", "UID", "SUID", "PPID", "PID", "COMMAND", "CALL");
}

syscall::setuid:entry, syscall::setreuid:entry, syscall::setresuid:entry
{
	self->before = uid;
	self->asked = 1;
}

syscall::setuid:return, syscall::setreuid:return, syscall::setresuid:return
/self->asked && errno == 0/
{
	printf("%7d %7d %8d %8d %-16s %s\n", self->before, uid, ppid, pid, execname, probefunc);
}

syscall::setuid:return, syscall::setreuid:return, syscall::setresuid:return
{
	self->before = 0;
	self->asked = 0;
}
