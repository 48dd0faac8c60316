//@ cmd: -d parse
vminfo:::as_fault { @[execname] = count(); }
