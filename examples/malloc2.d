#!/usr/bin/env -S descry -s
/* Counts sizes given to malloc(), separately for calls in which the kernel had to map memory. usage: descry -s malloc2.d -c 'program'
 *
 *	  no map
 *	           value  ------------- Distribution ------------- count
 *	             256 |                                         0
 *	             512 |@@@@@@@@@@@@@@@@@@@@                     9
 *	            1024 |                                         0
 *	            2048 |                                         0
 *	            4096 |                                         0
 *	            8192 |                                         0
 *	           16384 |                                         0
 *	           32768 |                                         0
 *	           65536 |@@@@@@@@@@@@@@@@@@@@                     9
 *	          131072 |                                         0
 */
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
