//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { stack(1, 2); }
