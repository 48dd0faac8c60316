//@ cmd: -d parse
proc:::signal-send { printf("%s(%d) -> %d signal %d", execname, pid, args[1]->pr_pid, args[2]); }
