#!/usr/bin/env -S descry -s
/* Samples the length of each CPU's queue, with the running thread: 0 is idle, 1 busy, more is saturated. ^C prints.
 *
 *	sampling; ^C ends
 *	  CPU 0
 *
 *	           value  ------------- Distribution ------------- count
 *	               0 |                                         0
 *	               1 |@@@@@@@@@@@@                             4877
 *	               2 |@@@@@@@@@@@@@@                           5496
 *	               3 |@@@@@@                                   2521
 *	               4 |@@@                                      1051
 *	               5 |@@                                       726
 *	               6 |@                                        331
 *	               7 |@@                                       655
 */
#pragma D option quiet

BEGIN
{
	printf("sampling; ^C ends\n");
}

sched:::enqueue { queue[args[2]->cpu_id]++; }
sched:::dequeue /queue[args[2]->cpu_id] > 0/ { queue[args[2]->cpu_id]--; }

profile-997
{
	@[cpu] = lquantize(queue[cpu] + (tid != 0), 0, 64, 1);
}

END
{
	printa("  CPU %d\n%@d\n", @);
}
