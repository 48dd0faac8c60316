//@ cmd: -d parse -p 1
plockstat$target:::mutex-block { @[ustack(5)] = count(); }
