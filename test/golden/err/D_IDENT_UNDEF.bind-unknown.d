//@ cmd: -d bind
//@ err
//@ exit: 1
inline int a = b; inline int b = a;
BEGIN { trace(a); }
