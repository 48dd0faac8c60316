//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { print(1, 0); }
