//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
translator struct foo < int I > { a = "x"; };
BEGIN { trace(xlate <struct foo>(1).a); }
