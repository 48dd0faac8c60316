#!/usr/bin/env -S descry -s
/* Counts how long disk requests take, for reads and for writes. ^C prints.
 *
 *	  write, microseconds
 *	           value  ------------- Distribution ------------- count
 *	              16 |                                         0
 *	              32 |@@@@@@@@@@@@@@@@@@@@@@@@@@               818
 *	              64 |@@@@@@@@@@@@@@                           427
 *	             128 |                                         14
 *	             256 |                                         0
 */
io:::start
{
	start[args[0]->b_edev, args[0]->b_blkno] = timestamp;
}

io:::done
/start[args[0]->b_edev, args[0]->b_blkno]/
{
	this->usecs = (timestamp - start[args[0]->b_edev, args[0]->b_blkno]) / 1000;
	@[args[0]->b_flags & B_READ ? "read, microseconds" : "write, microseconds"] = quantize(this->usecs);
	start[args[0]->b_edev, args[0]->b_blkno] = 0;
}
