/* arg1 and args[1] of a return are the value, of the function's type; thread variables link entry and return. */
//@ fbt: fentry, kprobe
//@ c: sh -c 'dd if=/dev/zero of=/dev/null bs=7 count=100; stat /nonexistent'
//@ cmd: -q
fbt::vfs_read:entry
/execname == "dd" && arg2 == 7/
{
	self->size = arg2;
	self->start = timestamp;
}

fbt::vfs_read:return
/self->size/
{
	@values["returned", arg1, args[1], arg0] = count();
	@time[timestamp > self->start ? "later" : "not later"] = count();
	self->size = 0;
}

fbt::vfs_fstatat:return
/execname == "stat" && arg1 < 0/
{
	/* an int: -2, not 4294967294 */
	@values["int", arg1, args[1], arg0] = count();
}
