#!/usr/bin/env -S descry -s
/* Counts sizes of disk requests, by the program that ran when they were made. ^C prints.
 *
 *	  2979 dd
 *
 *	           value  ------------- Distribution ------------- count
 *	           32768 |                                         0
 *	           65536 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 20
 *	          131072 |                                         0
 */
#pragma D option quiet

BEGIN
{
	printf("bytes of each disk request, by program; ^C ends\n");
}

io:::start
{
	@[pid, execname] = quantize(args[0]->b_bcount);
}

END
{
	printa("  %d %s\n%@d\n", @);
}
