//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN /execname/ { trace(1); }
