//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { printf("%d", "x"); }
