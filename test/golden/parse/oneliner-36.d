//@ cmd: -d parse
syscall:::entry { @[probefunc] = count(); }
tick-1s { printa("%8@d %s\n", @); trunc(@, 10); clear(@); }
