/* caller, stack() and stacks as keys begin at the function probed, on entry; on return, where it returns to. */
//@ fbt: fentry, kprobe
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=3
//@ cmd: -q
//@ sub: /\+0x[0-9a-f]+//
int seen;

fbt::vfs_read:entry
/pid == $target && arg2 == 7 && !seen/
{
	seen = 1;
	printf("caller %a\n", caller);
	stack(3);
	printf("deep %d, user %d\n", stackdepth > 3, ustackdepth > 0);
	@[stack(2)] = count();
}

fbt::vfs_read:return
/seen == 1/
{
	seen = 2;
	printf("caller %a\n", caller);
	stack(2);
}
