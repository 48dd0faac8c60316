//@ cmd: -d bind
syscall::read:entry, syscall::write:entry, syscall::read:return
{
	trace(arg0);
	trace(pid);
}
syscall::read:entry, syscall::openat:entry
/args[0] > 0/
{
	trace(args[0]);
}
