//@ cmd: -d bind
//@ err
//@ exit: 1
int a[3], b[3];
BEGIN { a = b; }
