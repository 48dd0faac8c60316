#!/usr/bin/env -S descry -s
/* Bytes read from and written to disks by process, every second: the ten largest. Writes that the page cache does later are the
 * kernel's, kworker's.
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
