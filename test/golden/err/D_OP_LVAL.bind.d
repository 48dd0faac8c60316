//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { 1 = 2; }
