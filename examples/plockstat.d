#!/usr/bin/env -S descry -s
/* Prints how often and how long a program's threads waited for each of its mutexes and read-write locks, and the waiting
 * functions. usage: descry -s plockstat.d -c 'program' (or -p PID)
 *
 *	waits for locks
 *	   COUNT   AVERAGE us   LOCK           CALLER
 *	       1        94788   0x5567a0aa9060 queue`waiter
 *
 *	  nanoseconds, all locks
 *	           value  ------------- Distribution ------------- count
 *	        33554432 |                                         0
 *	        67108864 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1
 *	       134217728 |                                         0
 */
#pragma D option quiet

plockstat$target:::mutex-block,
plockstat$target:::rw-block
{
	self->began = timestamp;
}

plockstat$target:::mutex-blocked,
plockstat$target:::rw-blocked
/self->began/
{
	@count[arg0, ufunc(ucaller)] = count();
	@mean[arg0, ufunc(ucaller)] = avg((timestamp - self->began) / 1000);
	@["nanoseconds, all locks"] = quantize(timestamp - self->began);
	self->began = 0;
}

END
{
	printf("waits for locks\n%8s %12s   %-14s %s\n", "COUNT", "AVERAGE us", "LOCK", "CALLER");
	printa("%@8d %@12d   0x%-12x %A\n", @count, @mean);
	printa(@);
}
