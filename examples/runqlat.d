#!/usr/bin/env -S descry -s
/* Counts how long a woken thread waits for a CPU.
 *
 *	  microseconds from wakeup to CPU
 *	           value  ------------- Distribution ------------- count
 *	              -1 |                                         0
 *	               0 |                                         531
 *	               1 |@@@@@@@@@@@@@@@@                         82847
 *	               2 |@@@@@@@@@@@@@                            69089
 *	               4 |@@                                       9008
 *	               8 |@@                                       9623
 *	              16 |@                                        6850
 *	              32 |@@                                       11105
 *	              64 |@                                        4925
 *	             128 |@                                        2718
 *	             256 |                                         1695
 *	             512 |                                         1728
 *	            1024 |@                                        4347
 *	            2048 |@                                        4119
 *	            4096 |                                         1717
 *	            8192 |                                         744
 *	           16384 |                                         398
 *	           32768 |                                         89
 */
sched:::wakeup
{
	woken[args[0]->pr_lwpid] = timestamp;
}

sched:::on-cpu
/woken[tid]/
{
	@["microseconds from wakeup to CPU"] = quantize((timestamp - woken[tid]) / 1000);
	woken[tid] = 0;
}
