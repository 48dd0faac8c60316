//@ cmd: -d bind
//@ err
//@ exit: 1
int a[4];
BEGIN { trace(a[4]); }
