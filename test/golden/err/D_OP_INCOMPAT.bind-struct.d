//@ cmd: -d bind
//@ err
//@ exit: 1
struct a { int x; }; struct b { int x; };
struct a a; struct b b;
BEGIN { a = b; }
