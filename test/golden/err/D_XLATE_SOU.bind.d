//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(xlate <int>(1)); }
