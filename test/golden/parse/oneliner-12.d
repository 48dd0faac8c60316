//@ cmd: -d parse
profile-997 /arg1 && execname == "node"/ { @[ustack(50)] = count(); } tick-10s { exit(0); }
