//@ cmd: -d bind
//@ err
//@ exit: 1
int n() { return "text"; }
BEGIN { trace(n()); }
