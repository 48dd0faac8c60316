//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { printf("%z", 1); }
