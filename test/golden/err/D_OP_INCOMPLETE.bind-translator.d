//@ cmd: -d bind
//@ err
//@ exit: 1
struct seen { int a; };
translator struct seen < struct hidden *p > { a = p->a; };
BEGIN { trace(1); }
