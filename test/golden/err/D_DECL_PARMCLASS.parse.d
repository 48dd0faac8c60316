//@ cmd: -d parse
//@ err
//@ exit: 1
int f(static int x);
int a[extern int];
extern int g(register int x);
