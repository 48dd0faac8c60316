//@ cmd: -d parse
syscall:::return /errno/ { @[execname, probefunc, errno] = count(); }
