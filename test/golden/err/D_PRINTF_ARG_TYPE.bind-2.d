//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { printf("%s", 1); }
