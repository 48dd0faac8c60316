#!/usr/bin/env -S descry -s
/* Sizes given to malloc(), apart by whether the kernel had to map memory. usage: descry -s malloc2.d -c 'program' */
pid$target::malloc:entry
{
	self->size = arg0;
}

syscall::mmap:entry
/self->size/
{
	@["mapped"] = quantize(self->size);
	self->size = 0;
}

pid$target::malloc:return
/self->size/
{
	@["no map"] = quantize(self->size);
	self->size = 0;
}
