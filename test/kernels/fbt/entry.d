/* Every entry of a kernel function, with its arguments as numbers and as the prototype declares them. */
//@ fbt: fentry, kprobe
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=100
//@ cmd: -q
fbt::vfs_read:entry
/pid == $target && args[2] == 7/
{
	@calls[probeprov, probemod, probefunc, probename, execname] = count();
	@bytes = sum(arg2);
}

fbt:vmlinux:vfs_write:entry
/pid == $target && arg2 == 7/
{
	@calls[probeprov, probemod, probefunc, probename, execname] = count();
}
