//@ cmd: -d parse
//@ err
//@ exit: 1
int foo bar;
