//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
struct foo s;
BEGIN { @[s] = count(); }
