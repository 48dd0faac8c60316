//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { p -= trace(0); }
