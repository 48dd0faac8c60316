//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { int x; int x = 2; }
