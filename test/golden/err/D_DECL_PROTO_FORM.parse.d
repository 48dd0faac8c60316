//@ cmd: -d parse
//@ err
//@ exit: 1
int f(int a, char a);
