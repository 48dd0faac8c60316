//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = (trace(1), 2); }
