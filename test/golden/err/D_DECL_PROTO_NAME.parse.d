//@ cmd: -d parse
//@ err
//@ exit: 1
int f(void x);
