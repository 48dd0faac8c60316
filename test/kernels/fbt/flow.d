/* -F indents by entry and return. */
//@ fbt: fentry, kprobe
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=2
//@ cmd: -F
fbt::ksys_read:,
fbt::vfs_read:
/pid == $target/
{
	trace(probename == "entry" ? 0 : arg1);
}
