//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; };
translator struct foo < int I > { a = I; };
translator struct foo < int J > { a = J; };
BEGIN { trace(1); }
