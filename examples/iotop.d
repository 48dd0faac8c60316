#!/usr/bin/env -S descry -s
/* Prints every second the ten processes that read and write most bytes on disks. Later writes of the page cache count for the
 * kernel's thread, kworker.
 *
 *	2026 Nov 23 06:12:34
 *	  COMMAND              PID DEVICE            BYTES
 *	W dd                 21947 vda             1310720
 */
#pragma D option quiet

io:::start
{
	@[args[0]->b_flags & B_READ ? "R" : "W", execname, pid, args[1]->dev_statname] = sum(args[0]->b_bcount);
}

tick-1s
{
	trunc(@, 10);
	printf("%Y\n%1s %-16s %7s %-10s %12s\n", walltimestamp, "", "COMMAND", "PID", "DEVICE", "BYTES");
	printa("%1s %-16s %7d %-10s %@12d\n", @);
	trunc(@);
}
