#!/usr/bin/env -S descry -s
/* Prints the bytes that malloc() has allocated, by stack, and the bytes that are still held at the end.
 * usage: descry -s mallocs.d -c 'program' (or -p PID)
 *
 *	bytes asked for
 *	libc.so.6`malloc+0x0
 *	shop`order+0xd
 *	shop`main+0x1c
 *	libc.so.6`__libc_start_call_main+0x7a
 *	libc.so.6`__libc_start_main+0x85
 *	shop`_start+0x21
 *	            9000
 *
 *	bytes still held: 6000
 */
#pragma D option quiet

pid$target:libc:malloc:entry
{
	self->size = arg0;
	self->inside = 1;
	@asked[ustack(8)] = sum(arg0);
}

pid$target:libc:malloc:return
/self->inside && arg1 != 0/
{
	held[arg1] = self->size;
	@held = sum(self->size);
}

pid$target:libc:malloc:return
{
	self->size = 0;
	self->inside = 0;
}

pid$target:libc:free:entry
/held[arg0]/
{
	@held = sum(-held[arg0]);
	held[arg0] = 0;
}

END
{
	printf("bytes asked for\n");
	trunc(@asked, 10);
	printa("%k%@16d\n\n", @asked);
	printa("bytes still held: %@d\n", @held);
}
