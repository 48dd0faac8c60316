//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { breakpoint(1, 2); }
