#!/usr/bin/env -S descry -s
/* Prints each kill(2), tkill(2) and tgkill(2): sender, signal, receiver, errno. Error 0: the signal was sent.
 *
 *	    PID COMMAND           SIG       TO ERRNO
 *	  22481 sh                 10    22482     0
 *	  22481 sh                  9  4194303     3
 */
#pragma D option quiet
#pragma D option switchrate=10hz

BEGIN
{
	printf("%7s %-16s %4s %8s %5s\n", "PID", "COMMAND", "SIG", "TO", "ERRNO");
}

syscall::kill:entry,
syscall::tkill:entry
{
	self->to = (int)arg0;
	self->sig = (int)arg1;
	self->in = 1;
}

syscall::tgkill:entry
{
	self->to = (int)arg1;
	self->sig = (int)arg2;
	self->in = 1;
}

syscall::kill:return,
syscall::tkill:return,
syscall::tgkill:return
/self->in/
{
	printf("%7d %-16s %4d %8d %5d\n", pid, execname, self->sig, self->to, errno);
	self->to = 0;
	self->sig = 0;
	self->in = 0;
}
