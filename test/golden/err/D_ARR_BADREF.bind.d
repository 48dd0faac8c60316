//@ cmd: -d bind
//@ err
//@ exit: 1
int a[5];
BEGIN { a[1, 2] = 3; }
