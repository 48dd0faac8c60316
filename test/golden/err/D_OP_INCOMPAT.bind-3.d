//@ cmd: -d bind
//@ err
//@ exit: 1
inline int a = "x";
BEGIN { trace(a); }
