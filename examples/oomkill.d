#!/usr/bin/env -S descry -s
/* Prints each process that the kernel kills because memory is short, and the load of the machine.
 *
 *	waiting for memory to run short...
 *	2026 Nov 23 06:12:53 killed 26429 python3 (76 MB), while python3 (26429) asked for memory; load 21.02
 */
#pragma D option quiet

BEGIN
{
	printf("waiting for memory to run short...\n");
}

sdt:oom::mark_victim
{
	printf("%Y killed %d %s (%d MB), while %s (%d) asked for memory; load %d.%02d\n", walltimestamp, args[0]->tgid,
	    stringof(args[0]->comm), args[0]->mm->total_vm / 256, execname, pid, `hp_avenrun[0] / 65536,
	    `hp_avenrun[0] % 65536 * 100 / 65536);
}
