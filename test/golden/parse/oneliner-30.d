//@ cmd: -d parse -p 1
pid$target::open:return /(int)arg1 == -1/ { @[errno, ustack()] = count(); }
