//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { s = "abc"; trace(s[256]); trace(execname[1000]); }
