//@ cmd: -d parse
//@ err
//@ exit: 1
int x = 3;
BEGIN { trace(x); }
