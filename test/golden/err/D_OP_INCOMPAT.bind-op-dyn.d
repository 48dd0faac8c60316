//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
translator struct foo < int I > { a = 1; };
BEGIN { x = xlate <struct foo *>(1); }
