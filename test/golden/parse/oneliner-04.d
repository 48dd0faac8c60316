//@ cmd: -d parse
syscall:::entry /execname == "sshd"/ { @[probefunc] = count(); }
