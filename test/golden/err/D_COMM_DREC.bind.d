//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(1); commit(1); }
