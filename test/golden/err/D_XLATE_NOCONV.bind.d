//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; int b; };
translator struct foo < int I > { a = I; };
BEGIN { trace(xlate <struct foo>(1).b); }
