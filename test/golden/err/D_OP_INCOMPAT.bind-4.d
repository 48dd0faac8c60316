//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(pid ? "a" : 2); }
