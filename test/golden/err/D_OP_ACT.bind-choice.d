//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { pid ? trace(1) : trace(2); }
