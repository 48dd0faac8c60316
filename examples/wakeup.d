#!/usr/bin/env -S descry -s
/* Sums the time that a program waits off the CPU, by the stacks of the threads that woke it.
 * usage: descry -s wakeup.d -c 'program' | descry flame --wakeup > wakeup.svg
 *
 *	  sh
 *	              vmlinux`try_to_wake_up+0x3a4
 *	              vmlinux`complete_signal+0x10f
 *	              vmlinux`__send_signal_locked+0x1b5
 *	              vmlinux`do_notify_parent+0x283
 *	              vmlinux`do_exit+0x7c5
 *	              vmlinux`do_group_exit+0x29
 *	              vmlinux`__x64_sys_exit_group+0x14
 *	              vmlinux`x64_sys_call+0x14f6
 *	              vmlinux`do_syscall_64+0x71
 *	              vmlinux`entry_SYSCALL_64_after_hwframe+0x76
 *
 *	              libc.so.6`_Exit+0x29
 *	              [stack ends: the process was too new for its unwind tables to be there]
 *	  sleep                                                        300217
 */
#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	off[tid] = timestamp;
}

sched:::wakeup
/args[1]->pr_pid == $target && off[args[0]->pr_lwpid]/
{
	@[args[1]->pr_fname, stack(), ustack(), execname] =
	    sum((timestamp - off[args[0]->pr_lwpid]) / 1000);
	off[args[0]->pr_lwpid] = 0;
}
