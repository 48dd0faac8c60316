//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(1 ? "a" : 2); }
