//@ cmd: -d parse -p 1
pid$target::malloc:entry /arg0 >= 262144/ { @[ustack()] = count(); }
