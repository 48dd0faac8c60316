//@ cmd: -d bind
//@ err
//@ exit: 1
struct s { int a; }; struct s s;
BEGIN { while (s) x++; }
