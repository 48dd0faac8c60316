//@ cmd: -d bind
syscall::read:entry, syscall::write:entry, syscall::openat:entry
{
	@[probefunc] = count();
}
