#!/usr/bin/env -S descry -s
/* Counts calls of a program's functions and their time, with the functions that they call. usage: descry -s dappprof.d -c 'program' (or -p PID)
 *
 *	FUNCTION                                                CALLS             NS
 *	main                                                        1          32242
 *	deliver                                                     3           2821
 *	order                                                       9           8774
 *	quote                                                       9          16176
 */
#pragma D option quiet

pid$target:a.out::entry
{
	self->depth++;
	self->start[probefunc, self->depth] = timestamp;
}

pid$target:a.out::return
/self->start[probefunc, self->depth]/
{
	@calls[probefunc] = count();
	@ns[probefunc] = sum(timestamp - self->start[probefunc, self->depth]);
	self->start[probefunc, self->depth] = 0;
}

pid$target:a.out::return
/self->depth/
{
	self->depth--;
}

END
{
	printf("%-50s %10s %14s\n", "FUNCTION", "CALLS", "NS");
	printa("%-50s %@10d %@14d\n", @calls, @ns);
}
