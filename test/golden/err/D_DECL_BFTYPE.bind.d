//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { string a:4; };
BEGIN { trace(1); }
