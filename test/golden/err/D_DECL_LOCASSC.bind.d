//@ cmd: -d bind
//@ err
//@ exit: 1
this int x[int];
BEGIN { trace(1); }
