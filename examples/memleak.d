#!/usr/bin/env -S descry -s
/* Prints the ten places in a program that hold most memory, every ten seconds and at the end. A place is the caller of
 * malloc(). 0 is a place whose memory was all freed. A wrapper of malloc() counts for all its callers; mallocs.d has whole
 * stacks.
 * usage: descry -s memleak.d -c 'program' (or -p PID)
 *
 *	       BYTES  FROM
 *	           0  shop`quote+0xe
 *	        6000  shop`order+0xd
 */
#pragma D option quiet

/* the place of each held block, by the block's address */
uint64_t from[uint64_t];
int64_t size[uint64_t];

pid$target:libc:malloc:entry,
pid$target:libc:realloc:entry,
pid$target:libc:calloc:entry,
pid$target:libc:aligned_alloc:entry,
pid$target:libc:memalign:entry
/!self->depth++/
{
	self->from = ucaller;
	self->size = probefunc == "malloc" ? arg0 : probefunc == "calloc" ? arg0 * arg1 : arg1;
	self->old = probefunc == "realloc" ? arg0 : 0;
}

pid$target:libc:malloc:return,
pid$target:libc:realloc:return,
pid$target:libc:calloc:return,
pid$target:libc:aligned_alloc:return,
pid$target:libc:memalign:return
/self->depth && !--self->depth && arg1 && self->old && from[self->old]/
{
	@bytes[uaddr(from[self->old])] = sum(-size[self->old]);
	from[self->old] = 0;
	size[self->old] = 0;
}

pid$target:libc:malloc:return,
pid$target:libc:realloc:return,
pid$target:libc:calloc:return,
pid$target:libc:aligned_alloc:return,
pid$target:libc:memalign:return
/!self->depth && self->from && arg1/
{
	from[arg1] = self->from;
	size[arg1] = (int64_t)self->size;
	@bytes[uaddr(self->from)] = sum((int64_t)self->size);
	self->from = 0;
	self->old = 0;
}

pid$target:libc:free:entry
/from[arg0]/
{
	@bytes[uaddr(from[arg0])] = sum(-size[arg0]);
	from[arg0] = 0;
	size[arg0] = 0;
}

tick-10s,
END
{
	printf("%12s  %s\n", "BYTES", "FROM");
	trunc(@bytes, 10);
	printa("%@12d  %A\n", @bytes);
}
