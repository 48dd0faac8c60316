/* -x fbt=fentry: what no trampoline can take is left out, and said. */
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=3
//@ cmd: -x fbt=fentry
//@ err
//@ sub: /^\d\+0 records.*\n//
//@ sub: /^descry: pid \d+ /descry: pid N /
fbt::migrate_disable:entry,
fbt::proc_single_open:entry,
fbt::vfs_read:entry
/pid == $target && probefunc == "vfs_read" && arg2 == 7/
{
	@ = count();
}
