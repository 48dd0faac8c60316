#!/usr/bin/env -S descry -s
/* The functions of a program as it calls them. usage: descry -s dapptrace.d -c 'program' (or -p PID) */
#pragma D option quiet
#pragma D option flowindent

pid$target:a.out::entry
{
	printf("(0x%x, 0x%x, 0x%x)\n", arg0, arg1, arg2);
}

pid$target:a.out::return
{
	printf("= %d\n", arg1);
}
