/* A hundred functions at once; those not called cost nothing. */
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=50
//@ cmd: -q
fbt:vmlinux:tcp_v4_*:entry,
fbt:vmlinux:vfs_*:entry,
fbt:vmlinux:vfs_*:return
/pid == $target && (probefunc == "vfs_read" || probefunc == "vfs_write")/
{
	self->n[probefunc, probename]++;
	@[probefunc, probename, id > 1000000 ? "id" : "no id"] = count();
}
