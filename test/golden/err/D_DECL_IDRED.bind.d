//@ cmd: -d bind
//@ err
//@ exit: 1
int x; string x;
BEGIN { trace(1); }
