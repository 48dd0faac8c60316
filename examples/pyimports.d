#!/usr/bin/env -S descry -s
/* Prints the modules that a Python program imports, and the time of each, without the modules that it imports in turn.
 * usage: descry -s pyimports.d -c 'python3 FILE'
 *
 *	MODULE                                     MICROSECONDS
 *	site                                               3299
 *	prices                                           617140
 */
#pragma D option quiet
#pragma D option strsize=80

python$target:::import-find-load-start
{
	self->depth++;
	self->began[self->depth] = timestamp;
	self->inner[self->depth] = 0;
}

python$target:::import-find-load-done
/self->depth > 0/
{
	this->took = timestamp - self->began[self->depth];
	@us[copyinstr(arg0)] = sum((this->took - self->inner[self->depth]) / 1000);
	self->began[self->depth] = 0;
	self->depth--;
	self->inner[self->depth] += this->took;
}

END
{
	trunc(@us, 15);
	printf("%-40s %14s\n", "MODULE", "MICROSECONDS");
	printa("%-40s %@14d\n", @us);
}
