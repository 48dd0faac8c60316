//@ cmd: -d bind
//@ err
//@ exit: 1
int down(int a) { return a ? down(a - 1) : 0; }
BEGIN { trace(down(3)); }
