/* -l -v says which functions a BPF trampoline cannot take, and why. */
//@ cmd: -l -v -s %s
//@ sub: /^ *\d{7} /ID /
//@ sub: /where trampolines pass no \d+ /where trampolines pass no N /
//@ sub: /^\t\targs.*\n//
fbt::do_exit: { }
fbt::proc_single_open:entry { }
fbt::migrate_disable:entry { }
fbt::from_kuid:entry { }
fbt::make_kuid:entry { }
fbt::copy_from_kernel_nofault:entry { }
fbt::do_mmap:entry { }
