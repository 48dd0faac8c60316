#!/usr/bin/env -S descry -s
/* Prints each function that a program calls. usage: descry -s dapptrace.d -c 'program' (or -p PID)
 *
 *	  0    -> main                                (0x1, 0x7fffdce8fb18, 0x7fffdce8fb28)
 *	  0      -> quote                             (0x1, 0x7fffdce8fb18, 0x7fffdce8fb28)
 *	  0      <- quote                             = 0
 *	  0      -> order                             (0x0, 0x0, 0xfffffffffffff000)
 *	  0      <- order                             = 72340172838076673
 *	  0      -> deliver                           (0x0, 0x3e8, 0x0)
 *	  0      <- deliver                           = 0
 *	  0      -> quote                             (0x0, 0x1, 0x55d3f2630)
 *	  0      <- quote                             = 0
 *	  0      -> order                             (0x1, 0x0, 0xfffffffffffff000)
 */
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
