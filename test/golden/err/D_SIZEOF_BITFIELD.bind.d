//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a:3; };
struct foo s;
BEGIN { trace(sizeof(s.a)); }
