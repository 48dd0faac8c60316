//@ cmd: -d parse
proc:::create { @["create", execname] = count(); } proc:::exit { @["exit", execname] = count(); }
