//@ cmd: -d bind
//@ err
//@ exit: 1
int a[args[0]];
BEGIN { trace(1); }
