#!/usr/bin/env -S descry -s
/* Sums the bytes of malloc(), calloc() and realloc() that a Python program still holds at the end, by the line of Python that allocated
 * them. ^C prints. The program runs several times slower meanwhile, because Python reports every line. Objects of up to 512 bytes lie in
 * Python's own pools and do not count, unless PYTHONMALLOC=malloc is set. usage: descry -s
 * pyheld.d -p PID (or -c 'python3 FILE')
 *
 *	LINE                                                   BYTES HELD
 *	encoder.py:258 iterencode                                     768
 *	shop.py:14 remember                                       1601101
 */
#pragma D option quiet
#pragma D option dynvarsize=16m
#pragma D option strsize=80

uint64_t bytes[uint64_t];
string line[uint64_t];

python$target:::line
{
	self->file = arg0;
	self->function = arg1;
	self->line = (int)arg2;
}

pid$target:libc:malloc:entry
/self->file/
{
	self->bytes = arg0;
}

pid$target:libc:calloc:entry
/self->file/
{
	self->bytes = arg0 * arg1;
}

pid$target:libc:realloc:entry
/self->file/
{
	self->old = arg0;
	self->bytes = arg1;
}

pid$target:libc:free:entry
/bytes[arg0]/
{
	@held[line[arg0]] = sum(-(int64_t)bytes[arg0]);
	bytes[arg0] = 0;
	line[arg0] = 0;
}

/* A block that realloc() could not enlarge still counts for the line that allocated it. */
pid$target:libc:realloc:return
/arg1 && bytes[self->old]/
{
	@held[line[self->old]] = sum(-(int64_t)bytes[self->old]);
	bytes[self->old] = 0;
	line[self->old] = 0;
}

pid$target:libc:malloc:return,
pid$target:libc:calloc:return,
pid$target:libc:realloc:return
/arg1 && self->bytes/
{
	bytes[arg1] = self->bytes;
	line[arg1] = strjoin(strjoin(strjoin(basename(copyinstr(self->file)), ":"), lltostr(self->line)),
	    strjoin(" ", copyinstr(self->function)));
	@held[line[arg1]] = sum(self->bytes);
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
	printf("%-50s %14s\n", "LINE", "BYTES HELD");
	trunc(@held, 10);
	printa("%-50s %@14d\n", @held);
}
