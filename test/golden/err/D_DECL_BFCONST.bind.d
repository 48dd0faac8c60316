//@ cmd: -d bind
//@ err
//@ exit: 1
int x; struct s { int a : x; };
