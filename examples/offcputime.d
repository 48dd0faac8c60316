#!/usr/bin/env -S descry -s
/* Sums the time off CPU by program, kernel stack and user stack, and prints the ten longest. ^C prints. A name chooses
 * one program. Threads that do not come back to a CPU meanwhile do not count. usage: descry -s offcputime.d [name]
 *
 *	microseconds off CPU
 *	sleep
 *
 *	vmlinux`__schedule+0x618
 *	vmlinux`schedule+0x23
 *	vmlinux`do_nanosleep+0x5e
 *	vmlinux`hrtimer_nanosleep+0x74
 *	vmlinux`common_nsleep+0x30
 *	vmlinux`__x64_sys_clock_nanosleep+0xce
 *	vmlinux`do_syscall_64+0x71
 *	vmlinux`entry_SYSCALL_64_after_hwframe+0x76
 *
 *	libc.so.6`clock_nanosleep+0x23
 *	libc.so.6`nanosleep+0x13
 *	sleep+0x64af
 *	sleep+0x5f81
 *	sleep+0x2558
 *	libc.so.6`__libc_start_call_main+0x7a
 *	libc.so.6`__libc_start_main+0x85
 *	sleep+0x2621
 *	          402840
 */
#pragma D option quiet
#pragma D option defaultargs

sched:::off-cpu
/pid && ($$1 == "" || execname == $$1)/
{
	self->off = timestamp;
}

sched:::on-cpu
/self->off/
{
	@waits[execname, stack(12), ustack(12)] = sum((timestamp - self->off) / 1000);
	self->off = 0;
}

END
{
	printf("microseconds off CPU\n");
	trunc(@waits, 10);
	printa("%s\n%k%k%@16d\n\n", @waits);
}
