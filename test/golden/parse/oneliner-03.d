//@ cmd: -d parse
syscall:::entry { @[execname] = count(); }
