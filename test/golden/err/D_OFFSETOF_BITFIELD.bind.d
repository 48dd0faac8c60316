//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a:3; };
BEGIN { trace(offsetof(struct foo, a)); }
