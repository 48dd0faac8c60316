#!/usr/bin/env -S descry -s
/* Prints each wait with the waiting thread's stacks, and each wake-up with the waking thread's stacks.
 * usage: descry -s chain.d -c 'program' | descry flame --chain > chain.svg
 *
 *	offcpu 13790 300104 sleep
 *	              vmlinux`__schedule+0x618
 *	              vmlinux`schedule+0x23
 *	              vmlinux`do_nanosleep+0x5e
 *	              vmlinux`hrtimer_nanosleep+0x74
 *	              vmlinux`common_nsleep+0x30
 *	              vmlinux`__x64_sys_clock_nanosleep+0xce
 *	              vmlinux`do_syscall_64+0x71
 *	              vmlinux`entry_SYSCALL_64_after_hwframe+0x76
 */
#pragma D option quiet
#pragma D option bufsize=16m

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::wakeup
/args[1]->pr_pid == $target/
{
	printf("wakeup %d %s", args[0]->pr_lwpid, execname);
	stack();
	ustack();
}

sched:::on-cpu
/self->off/
{
	printf("offcpu %d %d %s", tid, (timestamp - self->off) / 1000, execname);
	stack();
	ustack();
	self->off = 0;
}
