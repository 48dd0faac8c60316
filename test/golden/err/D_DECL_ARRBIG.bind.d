//@ cmd: -d bind
//@ err
//@ exit: 1
int a[3000000000];
