//@ cmd: -d bind
//@ err
//@ exit: 1
int twice(int a) { return 2 * a; }
int twice(int b) { return b; }
int trace(int b) { return b; }
BEGIN { exit(0); }
