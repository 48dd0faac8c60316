//@ cmd: -d bind
#pragma D option destructive
BEGIN
{
	tracemem(alloca(16), 16, 4);
	print(pid);
	stack();
	ustack(3, 100);
	usym(arg0);
	raise(9);
	system("echo %d", pid);
	freopen("");
	ftruncate();
	setopt("quiet", "1");
	denormalize(@a);
	@a = count();
}
