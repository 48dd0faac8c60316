#!/usr/bin/env -S descry -s
/* Memory that a program does not give back: bytes that malloc(), calloc() and realloc() gave it and that it still holds at the end, by
 * the size of a block and the function that asked for it. ^C prints. Where many functions ask through one, as xmalloc(), the stacks
 * that ask for blocks of a size are printed by: descry -n 'pid$target::malloc:entry /arg0 == 4096/ { @[ustack()] = count(); }' -p PID
 * usage: descry -s leaks.d -p PID (or -c 'program')
 *
 *	      SIZE FUNCTION                                       BYTES HELD
 *	      4096 tracee`worker                                       81920
 */
#pragma D option quiet
#pragma D option dynvarsize=16m

uint64_t bytes[uint64_t];
uint64_t asked[uint64_t];

pid$target:libc:malloc:entry
{
	self->bytes = arg0;
	self->caller = ucaller;
}

pid$target:libc:calloc:entry
{
	self->bytes = arg0 * arg1;
	self->caller = ucaller;
}

pid$target:libc:realloc:entry
{
	self->old = arg0;
	self->bytes = arg1;
	self->caller = ucaller;
}

pid$target:libc:free:entry
/bytes[arg0]/
{
	@held[bytes[arg0], ufunc(asked[arg0])] = sum(-(int64_t)bytes[arg0]);
	bytes[arg0] = 0;
	asked[arg0] = 0;
}

/* A block that realloc() could not enlarge is still held where it was asked for. */
pid$target:libc:realloc:return
/arg1 && bytes[self->old]/
{
	@held[bytes[self->old], ufunc(asked[self->old])] = sum(-(int64_t)bytes[self->old]);
	bytes[self->old] = 0;
	asked[self->old] = 0;
}

pid$target:libc:malloc:return,
pid$target:libc:calloc:return,
pid$target:libc:realloc:return
/arg1 && self->bytes/
{
	bytes[arg1] = self->bytes;
	asked[arg1] = self->caller;
	@held[self->bytes, ufunc(self->caller)] = sum(self->bytes);
}

pid$target:libc:malloc:return,
pid$target:libc:calloc:return,
pid$target:libc:realloc:return
{
	self->bytes = 0;
	self->old = 0;
}

END
{
	printf("%10s %-46s %10s\n", "SIZE", "FUNCTION", "BYTES HELD");
	trunc(@held, 15);
	printa("%10d %-46A %@10d\n", @held);
}
