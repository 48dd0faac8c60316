#!/usr/bin/env -S descry -s
/* Prints each system call that fails: the process, the call, its errno.
 * usage: descry -s errinfo.d ['program']; without a name, every program but descry
 *
 *	     PID COMMAND          CALL             ERR WHAT
 *	   14821 cat              access             2 no such file or directory
 *	   14821 cat              read              21 is a directory
 */
#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	what[EPERM] = "operation not permitted";
	what[ENOENT] = "no such file or directory";
	what[ESRCH] = "no such process";
	what[EINTR] = "interrupted";
	what[EIO] = "input/output error";
	what[EBADF] = "bad file descriptor";
	what[ECHILD] = "no child processes";
	what[EAGAIN] = "try again";
	what[ENOMEM] = "out of memory";
	what[EACCES] = "permission denied";
	what[EFAULT] = "bad address";
	what[EEXIST] = "file exists";
	what[ENOTDIR] = "not a directory";
	what[EISDIR] = "is a directory";
	what[EINVAL] = "invalid argument";
	what[ENOTTY] = "not a terminal";
	what[ENOSPC] = "no space left";
	what[ESPIPE] = "illegal seek";
	what[EPIPE] = "broken pipe";
	what[ENOSYS] = "not implemented";
	what[ENOTSUP] = "not supported";
	what[ECONNREFUSED] = "connection refused";
	what[ETIMEDOUT] = "timed out";
	what[EINPROGRESS] = "in progress";
	printf("%8s %-16s %-16s %3s %s\n", "PID", "COMMAND", "CALL", "ERR", "WHAT");
}

syscall:::return
/errno != 0 && pid != $pid && ($$1 == "" || execname == $$1)/
{
	printf("%8d %-16s %-16s %3d %s\n", pid, execname, probefunc, errno, what[errno]);
}
