//@ cmd: -d bind
//@ err
//@ exit: 1
struct { int a : 1; } s;
BEGIN { printf("%q\n", sizeof (s.a)); }
