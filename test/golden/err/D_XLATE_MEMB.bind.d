//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
translator struct foo < int I > { b = I; };
BEGIN { trace(1); }
