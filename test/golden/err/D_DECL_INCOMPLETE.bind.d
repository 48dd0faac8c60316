//@ cmd: -d bind
//@ err
//@ exit: 1
struct nosuchfoo x;
BEGIN { trace(1); }
