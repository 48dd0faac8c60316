#!/usr/bin/env -S descry -s
/* Sums the time that a program waits off the CPU, by user stack. usage: descry -s offcpu.d -c 'program' (or -p PID)
 *
 *	microseconds off CPU
 *	libc.so.6`clock_nanosleep+0x23
 *	libc.so.6`nanosleep+0x13
 *	sleep+0x64af
 *	sleep+0x5f81
 *	sleep+0x2558
 *	libc.so.6`__libc_start_call_main+0x7a
 *	libc.so.6`__libc_start_main+0x85
 *	sleep+0x2621
 *	          300087
 */
#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::on-cpu
/self->off/
{
	@waits[ustack(20)] = sum((timestamp - self->off) / 1000);
	self->off = 0;
}

END
{
	printf("microseconds off CPU\n");
	trunc(@waits, 20);
	printa("%k%@16d\n\n", @waits);
}
