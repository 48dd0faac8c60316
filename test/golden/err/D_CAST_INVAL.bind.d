//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
BEGIN { trace((struct foo)1); }
