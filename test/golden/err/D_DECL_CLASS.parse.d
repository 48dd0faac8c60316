//@ cmd: -d parse
//@ err
//@ exit: 1
self this int x;
static extern int y;
