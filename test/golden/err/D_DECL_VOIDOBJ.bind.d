//@ cmd: -d bind
//@ err
//@ exit: 1
void x;
BEGIN { trace(1); }
