//@ cmd: -d bind
//@ err
//@ exit: 1
int a[4];
BEGIN /a/ { exit(0); }
