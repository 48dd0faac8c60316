//@ cmd: -d bind
//@ err
//@ exit: 1
inline int x = x + 1;
inline int y = no_such;
BEGIN { trace(x + y); }
