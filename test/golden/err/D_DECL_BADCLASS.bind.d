//@ cmd: -d bind
//@ err
//@ exit: 1
static int x;
BEGIN { trace(1); }
