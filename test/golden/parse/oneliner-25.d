//@ cmd: -d parse -p 1
pid$target:a.out::entry { @[probefunc] = count(); }
