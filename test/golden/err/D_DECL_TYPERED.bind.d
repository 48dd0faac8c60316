//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
struct foo { int b; };
BEGIN { trace(1); }
