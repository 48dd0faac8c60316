//@ cmd: -d parse
//@ err
//@ exit: 1
int a[int, ...];
