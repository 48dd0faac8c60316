//@ cmd: -d parse
profile-997 { @[execname, pid] = count(); }
