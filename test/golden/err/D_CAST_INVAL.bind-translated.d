//@ cmd: -d bind
//@ err
//@ exit: 1
struct in { int i; };
struct out { int o; };
translator struct out < struct in *p > { o = p->i; };
struct in *f;
BEGIN { trace((uintptr_t)xlate <struct out *>(f)); }
