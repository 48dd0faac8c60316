//@ cmd: -d bind
BEGIN, END { @[probefunc, execname] = count(); }
