/* Trampolines for the functions that they can take, kprobes for the others, one program for all. */
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=3
//@ cmd: -q -x report
//@ err
//@ sub: /^(run|lost|cost|  program|3\+0).*\n//
//@ sub: /fired \d+/fired/
//@ sub: /^\n//
fbt::proc_single_open:entry,
fbt::migrate_disable:entry,
fbt::vfs_read:entry,
fbt::do_exit:return
/execname == "dd"/
{
	calls[probefunc]++;
}

END
{
	printf("%s %s\n", probename, calls["vfs_read"] ? "called" : "not called");
}
