#!/usr/bin/env -S descry -s
/* Prints every second the ten processes that read and write most bytes.
 *
 *	2026 Nov 23 06:13:22
 *	  COMMAND              PID        BYTES
 *	W dd                   909    209715300
 *	R dd                   909    209720596
 */
#pragma D option quiet

syscall::read:return,
syscall::pread64:return,
syscall::readv:return,
syscall::recvfrom:return
/(int)arg0 > 0/
{
	@["R", execname, pid] = sum(arg0);
}

syscall::write:return,
syscall::pwrite64:return,
syscall::writev:return,
syscall::sendto:return
/(int)arg0 > 0/
{
	@["W", execname, pid] = sum(arg0);
}

tick-1s
{
	trunc(@, 10);
	printf("%Y\n%1s %-16s %7s %12s\n", walltimestamp, "", "COMMAND", "PID", "BYTES");
	printa("%1s %-16s %7d %@12d\n", @);
	trunc(@);
}
