#!/usr/bin/env -S descry -s
/* Prints the text that shells read, and that shells and their commands write: the first 255 bytes of each call.
 *
 *	    PID COMMAND        TEXT
 *	   2701 sh           W echo hello from a shell
 *	   2702 sh           R echo hello from a shell
 *	   2702 sh           W hello from a shell
 */
#pragma D option quiet
#pragma D option switchrate=10hz

BEGIN
{
	printf("%7s %-12s %1s %s\n", "PID", "COMMAND", "", "TEXT");
}

syscall::read:entry,
syscall::write:entry
/execname == "sh" || execname == "dash" || execname == "bash" || execname == "ksh" || execname == "zsh" ||
    curthread->real_parent->comm == "sh" || curthread->real_parent->comm == "dash" ||
    curthread->real_parent->comm == "bash" || curthread->real_parent->comm == "ksh" ||
    curthread->real_parent->comm == "zsh"/
{
	self->buf = probefunc == "write" ? arg0 <= 2 ? arg1 : 0 : arg0 == 0 ? arg1 : 0;
}

syscall::read:return,
syscall::write:return
/self->buf && (int)arg0 > 0/
{
	printf("%7d %-12s %1s %s\n", pid, execname, probefunc == "read" ? "R" : "W",
	    copyinstr(self->buf, arg0 < 255 ? arg0 + 1 : 256));
}

syscall::read:return,
syscall::write:return
{
	self->buf = 0;
}
