//@ cmd: -d bind
//@ err
//@ exit: 1
int x[];
BEGIN { trace(1); }
