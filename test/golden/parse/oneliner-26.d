//@ cmd: -d parse -p 1
pid$target:libc.so.6::entry { @[probefunc] = count(); }
