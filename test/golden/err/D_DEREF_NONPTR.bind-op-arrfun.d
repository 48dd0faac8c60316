//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 1; trace(x[1]); }
