//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a:40; };
BEGIN { trace(1); }
