//@ cmd: -d parse
//@ err
//@ exit: 1
int a[3][int, string];
int b[int][string];
