#!/usr/bin/env -S descry -s
/* Counts how far the disk seeks between requests, in sectors, by the requesting program; 0 is sequential. ^C prints.
 *
 *	  2064 dd
 *
 *	           value  ------------- Distribution ------------- count
 *	              -1 |                                         0
 *	               0 |@@@@@@@@@@@@@@@@@@@@                     2
 *	               1 |                                         0
 *	               2 |                                         0
 *	               4 |                                         0
 *	               8 |                                         0
 *	              16 |                                         0
 *	              32 |                                         0
 *	              64 |                                         0
 */
#pragma D option quiet

int64_t last[dev_t];

BEGIN
{
	printf("sectors between disk requests; ^C ends\n");
}

io:::start
/last[args[0]->b_edev]/
{
	this->far = (int64_t)args[0]->b_blkno - last[args[0]->b_edev];
	@[pid, execname] = quantize(this->far > 0 ? this->far : -this->far);
}

io:::start
{
	last[args[0]->b_edev] = args[0]->b_blkno + args[0]->b_bcount / 512;
}

END
{
	printa("  %d %s\n%@d\n", @);
}
