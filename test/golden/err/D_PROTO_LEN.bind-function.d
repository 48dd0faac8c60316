//@ cmd: -d bind
//@ err
//@ exit: 1
int twice(int a) { return 2 * a; }
BEGIN { trace(twice(1, 2)); }
