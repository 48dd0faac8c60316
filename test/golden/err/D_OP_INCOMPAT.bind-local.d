//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { string s = 5; int n = "x"; if (1) { int inner = 1; } trace(inner); }
