#!/usr/bin/env -S descry -s
/* Prints each disk request when it completes: its size, its place, and its time in the device.
 *
 *	COMMAND                 BLOCK    BYTES     USECS
 *	dd               W  388247752    65536       230
 *	dd               W  362025984    65536       123
 *	dd               W  362025728    65536       115
 *	dd               W  362025856    65536       118
 */
#pragma D option quiet

BEGIN
{
	printf("%-16s %1s %10s %8s %9s\n", "COMMAND", "", "BLOCK", "BYTES", "USECS");
}

io:::start
{
	start[args[0]->b_edev, args[0]->b_blkno] = timestamp;
	name[args[0]->b_edev, args[0]->b_blkno] = execname;
}

io:::done
/start[args[0]->b_edev, args[0]->b_blkno]/
{
	printf("%-16s %1s %10d %8d %9d\n", name[args[0]->b_edev, args[0]->b_blkno],
	    args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_blkno, args[0]->b_bcount,
	    (timestamp - start[args[0]->b_edev, args[0]->b_blkno]) / 1000);
	start[args[0]->b_edev, args[0]->b_blkno] = 0;
	name[args[0]->b_edev, args[0]->b_blkno] = 0;
}
