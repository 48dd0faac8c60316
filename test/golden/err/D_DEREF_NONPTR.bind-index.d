//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 5; trace(x[1]); }
